// Everything that Scalar would ask of others is off: fonts, telemetry, its proxy,
// its agent. The page's policy forbids it as well.
const here = document.getElementById('reference');
Scalar.createApiReference(here, {
  url: here.dataset.document,
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  proxyUrl: '',
  hideClientButton: true,
  persistAuth: false,
});
