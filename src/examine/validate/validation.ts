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
import { checkFiles, type NamedThings, type LoadedSources, documentsIn, nothingOfOurs } from '../../compose/index.ts'
import { checkCluster } from './check-cluster.ts'
import { checkPods } from './check-pods.ts'
import { dryRun } from './dry-run.ts'

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

export interface ValidationOptions {
  /** What was asked for; for the message when none of it holds a document of ours. */
  readonly paths: readonly string[]
  /** False leaves out whether the files that are named are there and hold what they should. */
  readonly readsFiles: boolean
  /** True: manifests are judged as the operator runs them, each MCPRemoteProxy in pods of its own. */
  readonly inCluster: boolean
  /** True tells what was not looked at, too. */
  readonly isVerbose: boolean
  readonly stsEndpoint: string | undefined
  /** Group of the labels and annotations of pods. Default extauth.dev. */
  readonly apiGroup: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

/** Findings of one line each, however often they are made. */
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
 * The problems of the documents, those that a proxy would have with them (one for each ProxyConfig, one for the manifests of
 * a namespace without), and those with the files that they name. What a proxy builds is built, by the same code. That a
 * route uses a type which can't run yet is a warning here: the documents are valid, only `proxy` refuses them (decisions §1).
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
    // What no process uses, because it is alone or somebody else's to use.
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
  const nothing = found.all.length === 0 ? nothingOfOurs(loaded, options.paths) : undefined
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

/** The processes that these documents are for: each ProxyConfig is one, whatever else lies in the same directory. */
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
    // A ProxyConfig with problems has its own to tell; manifests beside it would be judged without their callers.
    const isDeclared = loaded.declared.some((item) => item.kind === 'ProxyConfig' && item.namespace === namespace)
    // A restriction is reported before there are backends that it is for.
    const serves = loaded.workloads.some(
      ({ document }) =>
        isHere(document) &&
        (document.backends.length > 0 ||
          document.refused.length > 0 ||
          (document.callers?.dishonoured ?? []).length > 0),
    )
    return serves && !isDeclared ? [{ loaded: { ...known, proxies: [] }, overrides: own }] : []
  })
}

/** Looks at each thing that documents name once, by its place. */
class Look {
  readonly #seen = new Set<string>()
  readonly #clock: Clock
  readonly #note: (message: string) => void

  constructor(clock: Clock, note: (message: string) => void) {
    this.#clock = clock
    this.#note = note
  }

  /** What is wrong with those that were not looked at before; without a directory, secrets are left alone. */
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
      this.#note(`secrets were not looked at, there is no directory ${directory}; --secrets-dir names another`)
    return checkFiles({ files: newFiles, secrets: hasSecrets ? newSecrets : [] }, directory ?? '', this.#clock)
  }
}

/** A registry waits for its data, so what is missing there does not keep it from starting. */
function missingSource({ holds, path: name, at }: NamedFile): Problem[] {
  if (holds !== 'registry file' && holds !== 'registry directory') return []
  const wanted = holds === 'registry file' ? 'file' : 'directory'
  const stat = statSync(name, { throwIfNoEntry: false })
  if (stat !== undefined && (wanted === 'file' ? stat.isFile() : stat.isDirectory())) return []
  return [{ ...at, message: `there is no ${wanted} ${name}; this registry is answered with 503 until there is` }]
}
