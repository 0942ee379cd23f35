/** Which way plain requests go in listeners of tests: Node's, or the short one in the project that says so (vitest.config.ts). */
export const IS_SHORT = process.env['TEST_WAY'] === 'short'
