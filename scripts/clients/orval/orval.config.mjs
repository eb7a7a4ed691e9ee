export default {
  inlet: {
    input: process.env.DOCUMENT,
    output: {
      workspace: process.cwd(),
      target: "inlet/inlet.ts",
      schemas: "inlet/model",
      client: "fetch",
      headers: true,
      baseUrl: { getBaseUrlFromSpecification: false, baseUrl: process.env.INLET_URL },
    },
  },
};
