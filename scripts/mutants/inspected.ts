import type { Mutation } from './mutation.ts'

/** What is kept of requests, and who may see it. */
export const INSPECTED: readonly Mutation[] = [
  {
    rule: 'a secret is found behind escapes',
    file: 'src/core/masking/secret-mask.ts',
    find: 'for (const set of sets) set.find(bytes, onFolded)',
    replace: '',
    tests: ['test/core/secret-mask.test.ts'],
  },
  {
    rule: 'a secret is found in base64 and hex',
    file: 'src/core/masking/secret-mask.ts',
    find: 'for (const set of sets) set.find(bytes, onDecoded)',
    replace: '',
    tests: ['test/core/secret-mask.test.ts'],
  },
  {
    rule: 'what was decoded is decoded again',
    file: 'src/core/masking/secret-mask.ts',
    find: 'const MAX_DEPTH = 2',
    replace: 'const MAX_DEPTH = 1',
    tests: ['test/core/secret-mask.test.ts'],
  },
  {
    rule: 'the line of a refused request has no secret that somebody else wrote',
    file: 'src/core/request-line.ts',
    find: '  if (!mask.isIn(JSON.stringify(told))) return told',
    replace: '  return told',
    tests: ['test/core/request-line.test.ts'],
  },
  {
    rule: 'names in traces hold no secret of the request',
    file: 'src/telemetry/mcp.ts',
    find: "typeof value === 'string' ? secrets.maskIn(value) : value",
    replace: 'value',
    tests: ['test/telemetry/mcp.test.ts'],
  },
  {
    rule: 'the credential of a request is known to what masks its answer',
    file: 'src/inspect/watched-request.ts',
    find: 'if (armed !== undefined) texts.addCredential(armed.credential)',
    replace: '',
    tests: ['test/inspect/lab-secrets.test.ts'],
  },
  {
    rule: "the page's session ends after eight hours",
    file: 'src/ops/page-access.ts',
    find: 'if (session.untilMs > clock.now() && session',
    replace: 'if (session',
    tests: ['test/ops/page-access.test.ts'],
  },
  {
    rule: "the page's session ends when somebody logs out",
    file: 'src/ops/page-access.ts',
    find: 'if (key !== undefined) sessions.delete(key)',
    replace: '',
    tests: ['test/ops/pages.test.ts'],
  },
  {
    rule: 'masks of credentials are kept for some of them',
    file: 'src/inspect/secret-texts.ts',
    find: 'if (oldest !== undefined) ofCredential.delete(oldest)',
    replace: '',
    tests: ['test/inspect/credentials-of-many.test.ts'],
  },
  {
    rule: "nothing outside of the page's folder is one of its files",
    file: 'src/inspect/assets.ts',
    find: '/^[a-z][a-z-]*\\.(?:js|css|svg|html)$/.test(name)',
    replace: '/(?:js|css|svg|html)$/.test(name)',
    tests: ['test/inspect/assets.test.ts'],
  },
]
