import type { Mutation } from './mutation.ts'

/** What the command line refuses, writes and prints. */
export const COMMANDS: readonly Mutation[] = [
  {
    rule: 'values of options are checked before anything starts',
    file: 'src/commands/options.ts',
    find: 'if (values.every((value) => option.is.accepts(value))) return values',
    replace: 'if (values.length >= 0) return values',
    tests: ['test/commands/option-values.test.ts'],
  },
  {
    rule: 'a negative number after an option is its value',
    file: 'src/commands/options.ts',
    find: 'if (takesValue && /^-[.\\d]/.test(word))',
    replace: 'if (takesValue && /^-[.]/.test(word))',
    tests: ['test/commands/options.test.ts'],
  },
  {
    rule: 'extauth init writes over nothing, and through no link',
    file: 'src/commands/init-files.ts',
    find: "const handle = await open(file, 'wx', isSecret ? 0o600 : 0o666)",
    replace: "const handle = await open(file, 'w', isSecret ? 0o600 : 0o666)",
    tests: ['test/lab/init.test.ts'],
  },
  {
    rule: 'only their owner can read the secrets that extauth init writes',
    file: 'src/commands/init-files.ts',
    find: 'isSecret ? 0o600 : 0o666',
    replace: '0o666',
    tests: ['test/lab/init.test.ts'],
  },
  {
    rule: 'only their owner can enter the folders of those secrets',
    file: 'src/commands/init-files.ts',
    find: 'isSecret ? 0o700 : 0o777, undo)',
    replace: '0o777, undo)',
    tests: ['test/lab/init.test.ts'],
  },
  {
    rule: 'extauth init takes back what it wrote when it can not write all',
    file: 'src/commands/init-files.ts',
    find: 'for (const step of undo.toReversed()) await step().catch(() => undefined)',
    replace: 'undo.length = 0',
    tests: ['test/lab/init.test.ts'],
  },
  {
    rule: 'no text of a log line steers a terminal',
    file: 'src/core/printable.ts',
    find: '/[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]/gu',
    replace: '/[\\n]/gu',
    tests: ['test/commands/human-line.test.ts'],
  },
  {
    rule: 'printed words mean the same to a shell',
    file: 'src/commands/shell-quote.ts',
    find: "`'${text.replaceAll(\"'\", String.raw`'\\''`)}'`",
    replace: "`'${text}'`",
    tests: ['test/commands/own-command.test.ts'],
  },
  {
    rule: 'a resource has no fragment',
    file: 'src/resources/patterns.ts',
    find: "([A-Za-z0-9._~:/?@!$&'()*+,;=[\\]-]|%[0-9A-Fa-f]{2})+$/",
    replace: "([A-Za-z0-9._~:/?@!$&'()*+,;=[\\]#-]|%[0-9A-Fa-f]{2})+$/",
    tests: ['test/resources/examples.test.ts'],
  },
  {
    rule: 'S3 is signed with its path as it is',
    file: 'src/apply/sigv4.ts',
    find: 'const path = service !== undefined && S3.test(service) ? canonicalPathOfS3(sent) : canonicalPath(sent)',
    replace: 'const path = canonicalPath(sent)',
    tests: ['test/apply/sigv4-botocore.test.ts'],
  },
  {
    rule: 'introspections are bounded per client, not per connection',
    file: 'src/proxy/inbound-request.ts',
    find: 'return this.connection.peer.clientOf(this.request).address',
    replace: "return this.request.socket.remoteAddress ?? ''",
    tests: ['test/e2e/introspection-peers.test.ts'],
  },
]
