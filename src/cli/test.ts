import { rename, rm, writeFile } from 'node:fs/promises'
import { monotonicNow } from '../core/index.ts'
import {
  loadCallersFile,
  loadFiles,
  type Loaded,
  renderProblem,
  resolveProxy,
  secretsDirectoryOf,
} from '../load/index.ts'
import type { ResolvedRoute } from '../resources/index.ts'
import { ConfigError, EXIT, type Io, UsageError } from '../compose/index.ts'
import { readDecisions } from '../examine/explain/index.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { command } from './command.ts'
import { configOption, MANIFEST_OPTIONS } from './options/source-options.ts'
import { FILE, oneOf } from './options/option-values.ts'
import {
  readyCases,
  renderRecordedCases,
  renderJUnit,
  runAsJson,
  runCases,
  type TestRun,
  renderRun,
} from '../examine/role-tests/index.ts'

export const TEST_SPEC: CommandSpec = {
  name: 'extauth test',
  summary: 'Tests rules against expected roles and decisions, without connections or secrets.',
  positionals: 'FILE|DIR…',
  completes: 'file',
  options: {
    config: configOption('Configuration file or directory, if apart from the cases.'),
    output: { type: 'string', is: oneOf(['text', 'json', 'junit']), value: 'text|json|junit', help: 'Default text.' },
    junit: { type: 'string', is: FILE, value: 'FILE', help: 'Also writes JUnit XML to this file.' },
    verbose: { type: 'boolean', short: 'v', help: 'Also lists passed cases.' },
    quiet: { type: 'boolean', short: 'q', help: 'Prints nothing if all cases pass.' },
    'require-reached': { type: 'boolean', help: 'Fails if no case reaches a mapping, fallback or rule.' },
    'from-decisions': {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'Prints cases made from a response of GET /decisions (proxy --show-claims); - for standard input.',
    },
    ...MANIFEST_OPTIONS,
  },
  notes: [
    'Cases are documents of kind RoleTest (extauth schema RoleTest), in the files of the configuration or in others:',
    '',
    '  apiVersion: extauth.dev/v1alpha1',
    '  kind: RoleTest',
    '  metadata: { name: roles }',
    '  spec:',
    '    cases:',
    '      - name: readers may read',
    '        route: aws                # or config: NAME of an MCPExternalAuthConfig',
    '        claims: { sub: ada, groups: [readers] }   # or token: FILE',
    '        expect: { role: "arn:aws:iam::123456789012:role/reader" }   # or none; reason; sessionName',
    '      - name: readers may not delete',
    '        route: github',
    '        claims: { sub: ada, groups: [readers] }',
    '        mcp: { name: delete_repo, args: { repo: sandbox/a } }   # method; name; uri; args; annotations',
    '        expect: { allowed: false, rule: default }',
    '',
    'Exit codes: 0 all passed, 1 a case failed, 2 invalid files or no case.',
  ].join('\n'),
}

export const runTest = command(TEST_SPEC, async ({ options, io }) => {
  const recorded = options.text('from-decisions')
  if (recorded !== undefined) return fromDecisions(recorded, options, io)
  const output = options.text('output') ?? 'text'
  if (options.positionals.length === 0) throw new UsageError('needs a FILE or DIR with cases. See extauth test --help.')
  return report(await runAll(options, io), output, options, io)
})

async function fromDecisions(file: string, options: Parsed, io: Io): Promise<number> {
  if (options.positionals.length > 0)
    throw new UsageError('--from-decisions excludes FILE|DIR: it prints cases and runs none')
  const { records, withoutClaims } = await readDecisions(file, io)
  io.stdout(renderRecordedCases(records, options.text('api-group')))
  if (withoutClaims > 0)
    io.stderr(`${withoutClaims} decisions skipped: recorded without claims (start the proxy with --show-claims)\n`)
  return EXIT.fine
}

async function runAll(options: Parsed, io: Io): Promise<TestRun> {
  const loaded = await loadFiles([...options.positionals, ...options.list('config')], {
    apiGroup: options.text('api-group'),
  })
  if (loaded.problems.length > 0) throw new ConfigError(loaded.problems.map(renderProblem))
  if (loaded.roleTests.length === 0) throw new UsageError('no case found; expected a document of kind RoleTest')
  const needsRoutes = loaded.roleTests.some(({ document }) =>
    document.spec.cases.some(({ route }) => route !== undefined),
  )
  const routes = needsRoutes ? await routesOf(loaded, options) : undefined
  const { cases, problems } = await readyCases({ loaded, routes }, io)
  if (problems.length > 0) throw new ConfigError(problems.map(renderProblem))
  return runCases(cases, { loaded, routes }, monotonicNow, Date.now)
}

async function routesOf(loaded: Loaded, options: Parsed): Promise<readonly ResolvedRoute[]> {
  const file = options.text('callers')
  const callers = file === undefined ? undefined : await loadCallersFile(file, secretsDirectoryOf(loaded, undefined))
  const { config, problems = [] } = resolveProxy(loaded, {
    namespace: options.text('namespace'),
    callers: callers?.config,
    ignoreManifestCallers: options.flag('ignore-manifest-callers'),
  })
  const all = [...(callers?.problems ?? []), ...problems]
  if (all.length > 0 || config === undefined) throw new ConfigError(all.map(renderProblem))
  return config.routes
}

async function report(run: TestRun, output: string, options: Parsed, io: Io): Promise<number> {
  const requireReached = options.flag('require-reached')
  const file = options.text('junit')
  if (file !== undefined) await writeWhole(file, renderJUnit(run, { requireReached }))
  const isIncomplete = requireReached && run.reach.unreached.length > 0
  const isFine = run.failed === 0 && !isIncomplete
  if (output === 'text') {
    if (!isFine || !options.flag('quiet')) io.stdout(renderRun(run, { verbose: options.flag('verbose') }))
  } else if (output === 'json') io.stdout(`${JSON.stringify(runAsJson(run), null, 2)}\n`)
  else io.stdout(renderJUnit(run, { requireReached }))
  return isFine ? EXIT.fine : EXIT.failed
}

/** Replaces the file atomically, for concurrent readers. */
async function writeWhole(file: string, text: string): Promise<void> {
  const beside = `${file}.${process.pid}.tmp`
  try {
    await writeFile(beside, text)
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true })
    throw new UsageError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code ?? 'error'})`)
  }
}
