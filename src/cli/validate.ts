import { SYSTEM_CLOCK } from '../core/index.ts'
import { type Loaded, renderProblem } from '../load/index.ts'
import { EXIT, type Io, UsageError, loadSources } from '../compose/index.ts'
import { command } from './command.ts'
import { oneOf } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { configOption, SOURCE_OPTIONS, sourcesFrom, stdinFor } from './options/source-options.ts'
import { validate, type ValidationReport } from '../examine/validate/index.ts'

export const VALIDATE_SPEC: CommandSpec = {
  name: 'extauth validate',
  summary: 'Validates configuration files and lists every problem with its location.',
  positionals: 'FILE|DIR…',
  completes: 'file',
  options: {
    config: configOption('Same as FILE|DIR.'),
    ...SOURCE_OPTIONS,
    'no-files': {
      type: 'boolean',
      help: 'Skips checks of referenced files and secrets.',
    },
    cluster: {
      type: 'boolean',
      help: 'Validates as the operator does, each MCPRemoteProxy separately.',
    },
    output: {
      type: 'string',
      is: oneOf(['text', 'json']),
      value: 'text|json',
      help: 'Default text.',
    },
    quiet: { type: 'boolean', short: 'q', help: 'Prints problems only, without warnings, notes and counts.' },
    verbose: {
      type: 'boolean',
      short: 'v',
      help: 'Also lists ignored workload fields, skipped documents and a missing secrets directory.',
    },
  },
  notes: [
    '- is standard input: helm template … | extauth validate -',
    'Directories: files ending in .yaml, .yml or .json are read, without subdirectories.',
    'The checks are those of extauth proxy with the same options, without listeners and connections.',
    '--target uses the only config of the files.',
    'Files without any supported document are a problem.',
    '',
    'Examples:',
    '  extauth validate proxy.yaml',
    '  extauth validate manifests/ --callers callers.yaml --listen :8080 --no-files',
    '  extauth validate auth.yaml --target https://mcp.example.com/mcp',
    '  extauth validate manifests/ --cluster',
    '',
    'Exit codes: 0 valid, 1 problems, 2 usage.',
  ].join('\n'),
}

/** Options of a proxy process that do not exist in a pod of the operator. */
const OF_A_PROCESS = ['target', 'external-auth', 'callers', 'listen', 'admin', 'secrets-dir'] as const

export const runValidate = command(VALIDATE_SPEC, async ({ options, io }) => {
  const output = options.text('output') ?? 'text'
  const paths = [...options.positionals, ...options.list('config')]
  const externalAuth = options.text('external-auth')
  if (paths.length === 0 && externalAuth === undefined)
    throw new UsageError('needs a FILE or DIR. See extauth validate --help.')
  if (externalAuth !== undefined && options.text('target') === undefined)
    throw new UsageError('--external-auth requires --target')
  const inCluster = options.flag('cluster')
  const other = OF_A_PROCESS.find((name) => options.text(name) !== undefined)
  if (inCluster && (other !== undefined || options.flag('ignore-manifest-callers')))
    throw new UsageError(
      `--cluster and --${other ?? 'ignore-manifest-callers'} exclude each other: the operator has no such option`,
    )
  const { stsEndpoint, ...wanted } = sourcesFrom(options, paths)
  const sources = await loadSources({ ...wanted, stdin: await stdinFor(paths, io) })
  const { loaded } = sources
  const report = await validate(sources, {
    paths,
    // In a cluster, referenced files are Secrets and ConfigMaps.
    readsFiles: !options.flag('no-files') && !inCluster,
    inCluster,
    isVerbose: options.flag('verbose'),
    stsEndpoint,
    apiGroup: wanted.apiGroup,
    env: io.env,
    clock: SYSTEM_CLOCK,
  })
  if (output === 'json') {
    const details = options.flag('verbose') ? { unused: loaded.unused, skippedDocuments: loaded.skipped } : {}
    io.stdout(`${JSON.stringify({ ...report, ...details }, null, 2)}\n`)
  } else print(report, loaded, options, io)
  return report.problems.length === 0 ? EXIT.fine : EXIT.failed
})

function print(report: ValidationReport, loaded: Loaded, options: Parsed, io: Pick<Io, 'stdout' | 'stderr'>): void {
  for (const problem of report.problems) io.stdout(`${renderProblem(problem)}\n`)
  if (options.flag('quiet')) return
  for (const warning of report.warnings)
    io.stdout(`${renderProblem({ ...warning, message: `warning: ${warning.message}` })}\n`)
  for (const note of report.notes) io.stdout(`${renderProblem({ ...note, message: `note: ${note.message}` })}\n`)
  if (options.flag('verbose')) {
    for (const unused of loaded.unused) io.stdout(`${renderProblem(unused)}\n`)
    for (const { file, line, kind } of loaded.skipped) io.stdout(`${file}:${line}:1  ${kind || '(no kind)'}  skipped\n`)
  }
  const count = (amount: number, one: string): string => `${amount} ${one}${amount === 1 ? '' : 's'}`
  io.stderr(
    `${count(report.files, 'file')}, ${count(report.documents, 'document')}, ${report.skipped} skipped: ${count(report.problems.length, 'problem')}, ${count(report.warnings.length, 'warning')}\n`,
  )
}
