/** Which way plain requests go in listeners of tests: the short one, or Node's in the project that says so (vitest.config.ts). */
export const IS_SHORT = process.env['TEST_WAY'] !== 'node'
