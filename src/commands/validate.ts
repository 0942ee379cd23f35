import {
  DEFAULT_API_GROUP,
  loadFiles,
  renderProblem,
  resolveProxy,
  type Loaded,
  type Problem,
} from '../resources/index.ts'
import { EXIT, type Io } from './io.ts'
import { API_GROUP, oneOf } from './option-values.ts'
import { parseOptions, renderHelp, UsageError, type CommandSpec } from './options.ts'

/** The table of its options. */
export const VALIDATE_SPEC: CommandSpec = {
  name: 'extauth validate',
  summary: 'Checks files and lists every problem with its place.',
  positionals: 'FILE|DIR…',
  completes: 'file',
  options: {
    'api-group': {
      type: 'string',
      is: API_GROUP,
      value: 'GROUP',
      help: `Group of our resources (default ${DEFAULT_API_GROUP}).`,
    },
    output: {
      type: 'string',
      is: oneOf(['text', 'json']),
      value: 'text|json',
      help: 'How problems are printed (default text).',
    },
    verbose: { type: 'boolean', help: 'Also lists fields of workloads that nothing reads, and skipped documents.' },
  },
  notes:
    'Of a directory, the files that end in .yaml, .yml or .json are read, without subdirectories.\nExit codes: 0 no problem, 1 problems, 2 usage.',
}

/** What `extauth validate` found; the JSON that `--output json` prints. */
export interface ValidationReport {
  readonly files: number
  /** Documents of ours, valid or not. */
  readonly documents: number
  readonly skipped: number
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  /** What was filled in, and what has to be done elsewhere: the redirect URIs to be registered at upstream providers. */
  readonly notes: readonly Problem[]
}

/** The `validate` command. Exit code 0 when there is no problem, 1 when there is, 2 for wrong usage (`UsageError`). */
export async function runValidate(
  argv: readonly string[],
  io: Pick<Io, 'stdout' | 'stderr'> & Partial<Pick<Io, 'env'>>,
): Promise<number> {
  const options = parseOptions(VALIDATE_SPEC, argv, io.env ?? {})
  if (options === 'help') {
    io.stdout(renderHelp(VALIDATE_SPEC))
    return EXIT.fine
  }
  const output = options.text('output') ?? 'text'
  if (options.positionals.length === 0) throw new UsageError('Which files? See extauth validate --help.')
  const loaded = await loadFiles(options.positionals, { apiGroup: options.text('api-group') })
  const report = validate(loaded)
  if (output === 'json') {
    const details = options.flag('verbose') ? { unused: loaded.unused, skippedDocuments: loaded.skipped } : {}
    io.stdout(`${JSON.stringify({ ...report, ...details }, null, 2)}\n`)
  } else print(report, loaded, options.flag('verbose'), io)
  return report.problems.length === 0 ? EXIT.fine : EXIT.failed
}

/**
 * The problems of the documents, and those that each ProxyConfig would have as a process. That a route uses a type which
 * can't run yet is a warning here: the documents are valid, only `proxy` refuses them (decisions §1).
 */
export function validate(loaded: Loaded): ValidationReport {
  const found = new Map<string, Problem>()
  const notes = new Map<string, Problem>()
  for (const problem of loaded.problems) found.set(renderProblem(problem), problem)
  for (const proxy of loaded.proxies) {
    // Each ProxyConfig is a process of its own, whatever else lies in the same directory.
    const { namespace } = proxy.document.metadata
    const result = resolveProxy({ ...loaded, proxies: [proxy], problems: [] }, { namespace })
    for (const problem of result.problems ?? []) found.set(renderProblem(problem), problem)
    for (const note of result.notes ?? []) notes.set(renderProblem(note), note)
  }
  const all = [...found.values()]
  const problems = all.filter((problem) => problem.reason === 'config_error')
  const isTold = new Set(problems.map(renderProblem))
  return {
    files: loaded.files,
    documents: loaded.declared.length + loaded.registries.length + loaded.callers.length + loaded.roleTests.length,
    skipped: loaded.skipped.length,
    problems,
    warnings: [
      ...loaded.warnings.filter((warning) => !isTold.has(renderProblem(warning))),
      ...all.filter((problem) => problem.reason === 'type_not_runnable'),
    ],
    notes: [...notes.values()],
  }
}

function print(report: ValidationReport, loaded: Loaded, verbose: boolean, io: Pick<Io, 'stdout' | 'stderr'>): void {
  for (const problem of report.problems) io.stdout(`${renderProblem(problem)}\n`)
  for (const warning of report.warnings)
    io.stdout(`${renderProblem({ ...warning, message: `warning: ${warning.message}` })}\n`)
  for (const note of report.notes) io.stdout(`${renderProblem({ ...note, message: `note: ${note.message}` })}\n`)
  if (verbose) {
    for (const unused of loaded.unused) io.stdout(`${renderProblem(unused)}\n`)
    for (const { file, line, kind } of loaded.skipped) io.stdout(`${file}:${line}:1  ${kind || '(no kind)'}  skipped\n`)
  }
  const count = (amount: number, one: string): string => `${amount} ${one}${amount === 1 ? '' : 's'}`
  io.stderr(
    `${count(report.files, 'file')}, ${count(report.documents, 'document')}, ${report.skipped} skipped: ${count(report.problems.length, 'problem')}, ${count(report.warnings.length, 'warning')}\n`,
  )
}
