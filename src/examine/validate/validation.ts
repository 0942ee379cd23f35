import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Clock } from '../../core/index.ts'
import {
  type Loaded,
  type NamedFile,
  type Problem,
  problemOfFile,
  type ProxyOverrides,
  renderProblem,
  resolveProxy,
} from '../../load/index.ts'
import {
  checkFiles,
  type NamedThings,
  type LoadedSources,
  documentsIn,
  noRecognizedDocuments,
} from '../../compose/index.ts'
import { checkCluster } from './check-cluster.ts'
import { checkPods } from './check-pods.ts'
import { dryRun } from './dry-run.ts'

/** Result of `extauth validate`: the JSON of `--output json`. */
export interface ValidationReport {
  readonly files: number
  /** Supported documents, valid or not. */
  readonly documents: number
  readonly skipped: number
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  /** Defaults that apply, and steps elsewhere: redirect URIs to register at upstream providers. */
  readonly notes: readonly Problem[]
}

export interface ValidationOptions {
  /** The given paths, for the message if they contain no supported document. */
  readonly paths: readonly string[]
  /** False skips checks of referenced files. */
  readonly readsFiles: boolean
  /** True validates manifests as the operator runs them, each MCPRemoteProxy in its own pods. */
  readonly inCluster: boolean
  /** True also reports skipped checks. */
  readonly isVerbose: boolean
  readonly stsEndpoint: string | undefined
  /** API group of pod labels and annotations. Default extauth.dev. */
  readonly apiGroup: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

/** Findings without duplicates. */
class Findings {
  readonly #byLine = new Map<string, Problem>()

  add(problems: readonly Problem[]): void {
    for (const problem of problems) this.#byLine.set(renderProblem(problem), problem)
  }

  get all(): readonly Problem[] {
    return [...this.#byLine.values()]
  }

  has(problem: Problem): boolean {
    return this.#byLine.has(renderProblem(problem))
  }
}

/**
 * Validates documents, each process that they configure (one per ProxyConfig, else one per namespace), and referenced
 * files. Builds the proxy by the code of `proxy`. A route with an unavailable type is a warning: the document is
 * valid, only `proxy` rejects it (decisions §1).
 */
export async function validate(sources: LoadedSources, options: ValidationOptions): Promise<ValidationReport> {
  const { loaded, overrides } = sources
  const [found, warnings, notes] = [new Findings(), new Findings(), new Findings()]
  found.add(loaded.problems)
  found.add(sources.problems)
  warnings.add(loaded.warnings)
  const look = new Look(options.clock, (message) => {
    if (options.isVerbose) notes.add([problemOfFile('(secrets)', message)])
  })
  if (options.inCluster) found.add(await checkCluster(loaded, options.apiGroup))
  // The operator runs no process for several manifests.
  const forProcesses = options.inCluster ? { ...loaded, workloads: [] } : loaded
  for (const process of processesIn(forProcesses, overrides)) {
    const result = resolveProxy(process.loaded, process.overrides)
    found.add(result.problems ?? [])
    notes.add(result.notes ?? [])
    warnings.add(result.warnings ?? [])
    if (result.config === undefined || sources.problems.length > 0) continue
    const { config } = result
    if (options.readsFiles) {
      const ofFiles = await look.at(config.places, config.secretsDirectory)
      found.add(ofFiles.problems)
      warnings.add(ofFiles.warnings)
      if (ofFiles.problems.length > 0) continue
    }
    found.add(await dryRun(config, options))
  }
  if (options.readsFiles) {
    // Documents that no process uses.
    const ofFiles = await look.at(
      { files: loaded.namedFiles, secrets: loaded.namedSecrets },
      overrides.secretsDirectory === undefined ? undefined : path.resolve(overrides.secretsDirectory),
    )
    found.add(ofFiles.problems)
    warnings.add([...ofFiles.warnings, ...loaded.namedFiles.flatMap(missingSource)])
  }
  const ofPods = await checkPods(loaded, options.apiGroup)
  found.add(ofPods.problems)
  warnings.add(ofPods.warnings)
  const nothing = found.all.length === 0 ? noRecognizedDocuments(loaded, options.paths) : undefined
  if (nothing !== undefined) found.add([nothing])
  const problems = found.all.filter(({ reason }) => reason === 'config_error')
  return {
    files: loaded.files,
    documents: documentsIn(loaded),
    skipped: loaded.skipped.length,
    problems,
    warnings: [
      ...warnings.all.filter((warning) => !found.has(warning)),
      ...found.all.filter(({ reason }) => reason === 'type_not_runnable'),
    ],
    notes: notes.all,
  }
}

interface Process {
  readonly loaded: Loaded
  readonly overrides: ProxyOverrides
}

/** The processes of these documents: one for each ProxyConfig, regardless of other documents in the same directory. */
function processesIn(loaded: Loaded, overrides: ProxyOverrides): Process[] {
  const known = { ...loaded, problems: [] }
  if (overrides.target !== undefined) return [{ loaded: known, overrides }]
  const asked = overrides.namespace === undefined ? undefined : [overrides.namespace]
  const namespaces = asked ?? [...new Set(loaded.declared.map(({ namespace }) => namespace))]
  return namespaces.flatMap((namespace) => {
    const own = { ...overrides, namespace }
    const isHere = ({ metadata }: { readonly metadata: { readonly namespace: string } }): boolean =>
      metadata.namespace === namespace
    const proxies = loaded.proxies.filter(({ document }) => isHere(document))
    if (proxies.length > 0) return proxies.map((proxy) => ({ loaded: { ...known, proxies: [proxy] }, overrides: own }))
    // A ProxyConfig with problems reports its own; manifests beside it would be validated without their callers.
    const isDeclared = loaded.declared.some((item) => item.kind === 'ProxyConfig' && item.namespace === namespace)
    // A restriction is reported even before its backends exist.
    const serves = loaded.workloads.some(
      ({ document }) =>
        isHere(document) &&
        (document.backends.length > 0 ||
          document.refused.length > 0 ||
          (document.callers?.unsupported ?? []).length > 0),
    )
    return serves && !isDeclared ? [{ loaded: { ...known, proxies: [] }, overrides: own }] : []
  })
}

/** Checks each referenced file and secret once per location. */
class Look {
  readonly #seen = new Set<string>()
  readonly #clock: Clock
  readonly #note: (message: string) => void

  constructor(clock: Clock, note: (message: string) => void) {
    this.#clock = clock
    this.#note = note
  }

  /** Problems of files and secrets not checked before. Without a directory, secrets are skipped. */
  at({ files, secrets }: NamedThings, directory: string | undefined): ReturnType<typeof checkFiles> {
    const isNew = ({ at, holds }: NamedThings['files' | 'secrets'][number]): boolean => {
      const key = JSON.stringify([at.file, at.line, at.column, at.kind, at.name, at.path, holds])
      if (this.#seen.has(key)) return false
      this.#seen.add(key)
      return true
    }
    const [newFiles, newSecrets] = [files.filter(isNew), secrets.filter(isNew)]
    const hasSecrets = directory !== undefined && existsSync(directory)
    if (directory !== undefined && !hasSecrets && newSecrets.length > 0)
      this.#note(`secrets were not checked: no directory ${directory}; set --secrets-dir`)
    return checkFiles({ files: newFiles, secrets: hasSecrets ? newSecrets : [] }, directory ?? '', this.#clock)
  }
}

/** A registry waits for its data, so missing data do not prevent its start. */
function missingSource({ holds, path: name, at }: NamedFile): Problem[] {
  if (holds !== 'registry file' && holds !== 'registry directory') return []
  const wanted = holds === 'registry file' ? 'file' : 'directory'
  const stat = statSync(name, { throwIfNoEntry: false })
  if (stat !== undefined && (wanted === 'file' ? stat.isFile() : stat.isDirectory())) return []
  return [{ ...at, message: `no ${wanted} ${name}; this registry returns 503 until it exists` }]
}
