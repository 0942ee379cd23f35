import { within } from '../mutation.ts'

/** Guards of `src/cli`. */
export default [
  ...within(
    'src/cli/convert.ts',
    ['test/slow/cli/convert.test.ts'],
    [
      [
        'extauth convert fails where it was given no document, as of a pipe that broke',
        "if (output.trim() === '')",
        'if (output === undefined)',
      ],
    ],
  ),
  ...within(
    'src/cli/init-files.ts',
    ['test/system/lab/init.test.ts'],
    [
      [
        'extauth init writes over nothing, and through no link',
        "const handle = await open(file, 'wx', isSecret ? 0o600 : 0o666)",
        "const handle = await open(file, 'w', isSecret ? 0o600 : 0o666)",
      ],
      ['only their owner can read the secrets that extauth init writes', 'isSecret ? 0o600 : 0o666', '0o666'],
      ['only their owner can enter the folders of those secrets', 'isSecret ? 0o700 : 0o777, undo)', '0o777, undo)'],
      [
        'extauth init takes back what it wrote when it can not write all',
        'for (const step of undo.toReversed()) await step().catch(() => undefined)',
        'undo.length = 0',
      ],
    ],
  ),
  ...within(
    'src/cli/login.ts',
    ['test/slow/bridge/login.test.ts'],
    [
      [
        'extauth login takes no address for a server that asks for no login where no server is',
        'if (status === 404 || status === 410 || status >= 500)',
        'if (status === 410 || status >= 500)',
      ],
    ],
  ),
  ...within(
    'src/cli/logout.ts',
    ['test/system/cli/logout.test.ts'],
    [
      ['logout forgets before it revokes', '    await store.forget(record)\n', ''],
      ['logout of one server leaves the others', 'wanted === undefined || endpoint === wanted', 'true'],
      ['a failed revocation is reported', '      exit = EXIT.failed\n', ''],
    ],
  ),
  ...within(
    'src/cli/operator.ts',
    ['test/slow/e2e/operator-tenants.test.ts'],
    [
      [
        'a cluster with --restrict-pod-template has it',
        "restrictPodTemplate: options.flag('restrict-pod-template')",
        'restrictPodTemplate: false',
      ],
    ],
  ),
  ...within(
    'src/cli/options/login-options.ts',
    ['test/system/cli/logout.test.ts', 'test/system/login/discovery.test.ts'],
    [
      [
        'plain http takes no login but on this machine',
        "if (endpoint.protocol === 'http:' && !isLoopbackHost(endpoint.hostname))",
        "if (endpoint.protocol === 'ftp:')",
      ],
      [
        'a metadata document is https',
        "if (metadata !== undefined && new URL(metadata).protocol !== 'https:')",
        "if (metadata === '')",
      ],
    ],
  ),
  ...within(
    'src/cli/options/options.ts',
    ['test/unit/cli/options/option-values.test.ts'],
    [
      [
        'values of options are checked before anything starts',
        'if (values.every((value) => option.is.accepts(value))) return values',
        'if (values.length >= 0) return values',
      ],
      [
        'a negative number after an option is its value',
        'if (takesValue && /^-[.\\d]/.test(word))',
        'if (takesValue && /^-[.]/.test(word))',
        ['test/unit/cli/options/options.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/cli/shell-quote.ts',
    ['test/system/cli/own-command.test.ts'],
    [['printed words mean the same to a shell', "`'${text.replaceAll(\"'\", String.raw`'\\''`)}'`", "`'${text}'`"]],
  ),
  ...within(
    'src/cli/test.ts',
    [
      'test/unit/examine/role-tests',
      'test/system/examine/role-tests',
      'test/unit/examine/explain/explain-input.test.ts',
    ],
    [
      [
        'a case that failed is exit code 1',
        'const isFine = run.failed === 0 && !isIncomplete',
        'const isFine = !isIncomplete',
      ],
      [
        'a mapping that no case reaches fails where that is wanted',
        'const isFine = run.failed === 0 && !isIncomplete',
        'const isFine = run.failed === 0',
      ],
      [
        'files without a case are refused',
        'if (loaded.roleTests.length === 0) throw',
        'if (loaded.roleTests.length < 0) throw',
      ],
      [
        'files with problems run no case',
        'if (loaded.problems.length > 0) throw new ConfigError(loaded.problems.map(renderProblem))',
        '',
      ],
      [
        'a case that cannot be run stops all',
        'if (problems.length > 0) throw new ConfigError(problems.map(renderProblem))\n  return runCases',
        'return runCases',
      ],
    ],
  ),
]
