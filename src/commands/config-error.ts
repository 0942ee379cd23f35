/** A configuration that can't be used: every problem as a line that names file, place and what is expected. */
export class ConfigError extends Error {
  readonly lines: readonly string[]

  constructor(lines: readonly string[], options: { cause?: unknown } = {}) {
    super(lines[0] ?? 'the configuration cannot be used', options)
    this.name = 'ConfigError'
    this.lines = lines
  }
}
