// What the TypeScript programs check with; each run.sh copies it beside its own.

export const env = (name: string): string => process.env[name] ?? fail(`${name} is not set`);

export function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

export let checks = 0;

export function equal<T>(what: string, got: T, want: NoInfer<T>): void {
  checks++;
  if (JSON.stringify(got) !== JSON.stringify(want)) fail(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// of gives an answer or an error that is there, and compiles only where its type
// says something: neither any nor unknown will do.
export function of<T>(what: string, value: unknown extends T ? never : T): NonNullable<T> {
  return (value as T) ?? fail(`${what}: another answer`);
}
