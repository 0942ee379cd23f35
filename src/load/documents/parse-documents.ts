import { z } from 'zod'
import {
  manifestSection,
  typedSpec,
  configHash,
  decidesAccess,
  externalAuthConfig,
  proxyConfig,
  roleTest,
  registryConfig,
  FOREIGN_FIELDS,
  INCOMING_AUTH_FIELDS,
  workload,
  whyIdle,
  whyNotRead,
  withClientPresets,
  workloadFields,
  WORKLOAD_KINDS,
  type WorkloadKind,
} from '../../resources/index.ts'
import { toWorkload } from '../workloads/workload.ts'
import { addOidcConfig, addTelemetryConfig, addToolConfig } from './shared-configs.ts'
import { isConfigMap, textsIn } from './config-map.ts'
import { addPolicySets } from './policy-sets.ts'
import { crossCheck } from './cross-check.ts'
import { DEFAULT_API_GROUP, classifyDocument, type DocumentKind } from './document-kinds.ts'
import { Reader } from './document-reader.ts'
import { unknownField } from './explain-issue.ts'
import { once, DEFAULT_NAMESPACE, isRecord } from '../../fields/index.ts'
import { nothingLoaded, type Loaded, type Loading } from './loaded.ts'
import { markedPod } from './marked-pod.ts'
import { nearest } from '../../core/index.ts'
import { fileProblem, pathText, withoutFirstStep, type Located, type Problem } from './problem.ts'
import { referencesOf } from './references.ts'
import { addAffectedRoutes } from '../routes/affected-routes.ts'
import { refusedHttp, sectionWarnings, typeWarnings } from './warnings.ts'
import { fullBudget, objectBudget, YAML_LIMITS } from '../yaml/yaml-limits.ts'
import { readYaml, type TextDocument } from '../yaml/yaml.ts'

/** One file as text; `path` appears in problems, and relative paths start at its directory. */
export interface SourceText {
  readonly path: string
  readonly text: string
}

export interface ParseOptions {
  /** API group of the resources; default `extauth.dev`. `toolhive.stacklok.dev` always loads as well. */
  readonly apiGroup?: string | undefined
}

const SCHEMAS = {
  MCPExternalAuthConfig: once(externalAuthConfig),
  ProxyConfig: once(proxyConfig),
  RegistryConfig: once(registryConfig),
  RoleTest: once(roleTest),
  Callers: once(() => z.strictObject({ auth: manifestSection() })),
}
const WORKLOADS = Object.fromEntries(WORKLOAD_KINDS.map((kind) => [kind, once(() => workload(kind))])) as Record<
  WorkloadKind,
  () => ReturnType<typeof workload>
>

/**
 * Parses YAML or JSON texts, checks every document, and reports every problem with its location. Never throws for
 * their content; time and memory are bounded (`YAML_LIMITS`).
 */
export function parseDocuments(files: readonly SourceText[], options: ParseOptions = {}): Loaded {
  const loading = nothingLoaded()
  for (const file of files) addFile(loading, file, options.apiGroup ?? DEFAULT_API_GROUP)
  crossCheck(loading)
  addAffectedRoutes(loading)
  const order = new Map(files.map((file, index) => [file.path, index]))
  for (const list of [loading.problems, loading.warnings]) list.sort((a, b) => inOrder(order, a, b))
  return loading
}

/**
 * The same for parsed objects, such as those of a cluster; every location is line 1. References are checked only with
 * `references`, otherwise each object is validated alone. `into`: an earlier result, to which these objects are
 * added. Never throws.
 */
export function parseObjects(
  objects: readonly unknown[],
  options: ParseOptions & { readonly references?: boolean; readonly into?: Loading | undefined } = {},
): Loading {
  const loading = options.into ?? nothingLoaded()
  const start = { line: 1, column: 1 }
  const anywhere = { start, warnings: [], locate: () => start, placeWithin: () => start }
  const context = { apiGroup: options.apiGroup ?? DEFAULT_API_GROUP, budget: objectBudget() }
  for (const value of objects) {
    const reader = new Reader(loading, '(object)', { value, ...anywhere }, context)
    const path = pathOfPrototype(value)
    // Copies of an object would lose the key; texts with it are rejected too.
    if (path !== undefined)
      loading.problems.push(reader.located(value, [], '', '').problem(path, 'unknown field "__proto__"'))
    addDocument(reader, value, [])
  }
  if (options.references === true) crossCheck(loading)
  return loading
}

/** Documents that must be alone in a file: the registry file, and an `auth` section. */
type SingleKind = 'registry' | 'callers'

/**
 * Parses a text with one document of this kind, or a ConfigMap with one, possibly in a list. Any other count is a
 * problem. Never throws.
 */
export function parseSingle({ path, text }: SourceText, kind: SingleKind): Loaded {
  const loading = nothingLoaded()
  loading.files = 1
  const context = { apiGroup: DEFAULT_API_GROUP, budget: fullBudget(), isOfFew: true }
  const { documents, problems } = readYaml(text, context.budget)
  const found: TextDocument[] = []
  for (const document of documents.filter(({ value }) => value !== null)) {
    const maps = configMapsIn(document.value)
    if (maps.length === 0) found.push(document)
    for (const { value, prefix } of maps)
      for (const inner of textsIn(value, document, prefix, context)) {
        problems.push(...inner.problems)
        found.push(
          ...inner.documents.filter(
            (one) => isRecord(one.value) && classifyDocument(one.value, context.apiGroup).is === kind,
          ),
        )
      }
  }
  const [document] = found
  if (problems.length > 0)
    loading.problems.push(...problems.map((problem) => fileProblem(path, problem.message, problem)))
  else if (document === undefined || found.length > 1)
    loading.problems.push(fileProblem(path, `expected one document, found ${found.length}`))
  else {
    const reader = new Reader(loading, path, document, context)
    if (kind === 'registry') addRegistry(reader, document.value, [])
    else addCallers(reader, document.value, [])
  }
  return loading
}

function configMapsIn(value: unknown): { value: Readonly<Record<string, unknown>>; prefix: PropertyKey[] }[] {
  if (!isRecord(value)) return []
  if (isConfigMap(value)) return [{ value, prefix: [] }]
  const items: unknown[] = value.kind === 'List' && Array.isArray(value.items) ? value.items : []
  return items.flatMap((item, index) =>
    isRecord(item) && isConfigMap(item) ? [{ value: item, prefix: ['items', index] }] : [],
  )
}

interface Step {
  readonly value: unknown
  readonly key: string
  /** Undefined for the document itself. */
  readonly parent: Step | undefined
}

/** The path of a key `__proto__`, which `JSON.parse` keeps as a field; undefined without one. */
function pathOfPrototype(document: unknown): PropertyKey[] | undefined {
  const waiting: Step[] = [{ value: document, key: '', parent: undefined }]
  for (let step = waiting.pop(); step !== undefined; step = waiting.pop()) {
    const { value, key, parent } = step
    if (key === '__proto__') {
      const path = [key]
      for (let above = parent; above?.parent !== undefined; above = above.parent) path.push(above.key)
      return path.slice(0, MOST_STEPS).toReversed()
    }
    if (typeof value !== 'object' || value === null) continue
    for (const [name, inner] of Object.entries(value)) {
      if (name === '__proto__' || (typeof inner === 'object' && inner !== null))
        waiting.push({ value: inner, key: name, parent: step })
    }
  }
  return undefined
}

/** Maximum steps of a reported path, counted from its end. */
const MOST_STEPS = 64

const inOrder = (files: ReadonlyMap<string, number>, a: Problem, b: Problem): number =>
  (files.get(a.file) ?? 0) - (files.get(b.file) ?? 0) || a.line - b.line || a.column - b.column

function addFile(loading: Loading, { path, text }: SourceText, apiGroup: string): void {
  loading.files += 1
  const context = { apiGroup, budget: fullBudget(), isOfFew: true }
  const { documents, problems } = readYaml(text, context.budget)
  for (const problem of problems) loading.problems.push(fileProblem(path, problem.message, problem))
  for (const document of documents) {
    addDocument(new Reader(loading, path, document, context), document.value, [])
    if (loading.problems.length > YAML_LIMITS.problems) return
  }
}

function addDocument(reader: Reader, value: unknown, prefix: readonly PropertyKey[]): void {
  // An empty document (a comment, `---` twice) is skipped.
  if (value === null || value === undefined) return
  const { loading } = reader
  const place = reader.located(value, prefix, '', '')
  if (!isRecord(value)) {
    loading.problems.push(place.problem([], 'expected a document with "apiVersion" and "kind"'))
    return
  }
  const classified = classifyDocument(value, reader.context.apiGroup)
  if (classified.is === 'recognized' || classified.is === 'foreign') {
    const named = { kind: kindText(value), name: nameText(value), namespace: namespaceText(value) }
    addPolicySets(reader, value, reader.located(value, prefix, named.kind, named.name), named)
  }
  switch (classified.is) {
    case 'recognized':
      return addOurs(
        reader,
        classified.isForeign ? withForeignDefaults(value, classified.kind) : value,
        prefix,
        classified.kind,
      )
    case 'registry':
      return addRegistry(reader, value, prefix)
    case 'callers':
      return addCallers(reader, value, prefix)
    case 'list':
      return classified.items.forEach((item, index) => addDocument(reader, item, [...prefix, 'items', index]))
    case 'wrong':
      loading.problems.push(
        reader.located(value, prefix, kindText(value), nameText(value)).problem(classified.path, classified.message),
      )
      return
    case 'foreign':
      if (isConfigMap(value) && addConfigMap(reader, value, prefix)) return
      {
        const pod = markedPod(value, reader.context.apiGroup)
        if (pod !== undefined) {
          loading.pods.push(reader.located(pod, prefix, classified.kind, nameText(value)))
          return
        }
      }
      loading.skipped.push({ file: reader.file, line: place.line, kind: classified.kind })
      if (classified.warning !== undefined) {
        loading.warnings.push(
          reader.located(value, prefix, classified.kind, nameText(value)).problem(['apiVersion'], classified.warning),
        )
      }
  }
}

/** Adds the supported documents of a ConfigMap; false if it has none. */
function addConfigMap(
  { loading, file, text, context }: Reader,
  value: Readonly<Record<string, unknown>>,
  prefix: readonly PropertyKey[],
): boolean {
  const texts = textsIn(value, text, prefix, context)
  const name = nameText(value)
  for (const { key, documents, problems } of texts) {
    for (const problem of problems) {
      const path = pathText([...prefix, 'data', key])
      loading.problems.push({ ...fileProblem(file, problem.message, problem), kind: 'ConfigMap', name, path })
    }
    for (const document of documents) addDocument(new Reader(loading, file, document, context), document.value, [])
  }
  return texts.length > 0
}

function addOurs(
  reader: Reader,
  value: Readonly<Record<string, unknown>>,
  prefix: readonly PropertyKey[],
  kind: DocumentKind,
): void {
  const { loading } = reader
  const name = nameText(value)
  const place = reader.located(value, prefix, kind, name)
  reader.warnAboutScalars(prefix, place)
  if (kind === 'RoleTest') return addRoleTest(reader, value, place)
  if (name !== '') {
    loading.declared.push({ kind, name, namespace: namespaceText(value), place, references: referencesOf(kind, value) })
  }
  if (kind === 'MCPExternalAuthConfig') {
    const document = reader.check(SCHEMAS.MCPExternalAuthConfig(), value, place)
    if (document === undefined) return
    const auth = { ...place, document, configHash: configHash(document.spec) }
    loading.auths.push(auth)
    // The sub-object may have the name of an alias of the type.
    const field = isRecord(value.spec) ? String(value.spec.type) : ''
    loading.warnings.push(...typeWarnings(auth, typedSpec(document.spec), ['spec', field]))
  } else if (kind === 'MCPOIDCConfig') addOidcConfig(reader, value, place)
  else if (kind === 'MCPTelemetryConfig') addTelemetryConfig(reader, value, place)
  else if (kind === 'MCPToolConfig') addToolConfig(reader, value, place)
  else if (kind === 'ProxyConfig') {
    const document = reader.check(SCHEMAS.ProxyConfig(), value, place)
    if (document !== undefined) loading.proxies.push({ ...place, document })
  } else {
    warnAboutUnused(reader, value, place, kind)
    const document = reader.check(WORKLOADS[kind](), value, place)
    if (document === undefined) return
    const found = toWorkload(kind, document)
    loading.workloads.push({ ...place, document: found })
    if (found.ownAuthServer === undefined) return
    const typed = { type: 'embeddedAuthServer' as const, spec: found.ownAuthServer }
    loading.warnings.push(...typeWarnings(place, typed, ['spec', 'authServerConfig']))
  }
}

/**
 * Applies the defaults of another group, and removes `status`, which only its controller defines. The discovered
 * backends of a VirtualMCPServer are kept.
 */
function withForeignDefaults(
  { status, ...written }: Readonly<Record<string, unknown>>,
  kind: DocumentKind,
): typeof written {
  const value = kind === 'VirtualMCPServer' && status !== undefined ? { ...written, status } : written
  const field = kind === 'VirtualMCPServer' ? 'authServerConfig' : 'embeddedAuthServer'
  const { spec } = value
  if (!isRecord(spec) || spec[field] === undefined) return value
  return { ...value, spec: { ...spec, [field]: withClientPresets(spec[field]) } }
}

function addRoleTest(reader: Reader, value: unknown, place: Located<unknown>): void {
  const document = reader.check(SCHEMAS.RoleTest(), value, place)
  if (document === undefined) return
  // A null claim differs from an absent one, so claims are used as written.
  const written = (value as { readonly spec: { readonly cases: readonly { readonly claims?: object }[] } }).spec.cases
  const cases = document.spec.cases.map((each, index) => {
    const claims = written[index]?.claims
    return claims === undefined ? each : { ...each, claims: { ...claims } }
  })
  reader.loading.roleTests.push({ ...place, document: { ...document, spec: { cases } } })
}

function addRegistry(reader: Reader, value: unknown, prefix: readonly PropertyKey[]): void {
  const place = reader.located(value, prefix, 'RegistryConfig', '')
  reader.warnAboutScalars(prefix, place)
  const document = reader.check(SCHEMAS.RegistryConfig(), value, place)
  if (document === undefined) return
  reader.loading.registries.push({ ...place, document })
  reader.loading.problems.push(...refusedHttp(document.auth, place, ['auth']))
  reader.loading.warnings.push(...sectionWarnings(document.auth, place, ['auth']))
}

function addCallers(reader: Reader, value: unknown, prefix: readonly PropertyKey[]): void {
  const found = reader.located(value, prefix, 'AuthSection', '')
  // Problems of a section without the outer key have paths that start one step later.
  const isBare = isRecord(value) && !('auth' in value)
  const place = isBare ? withoutFirstStep(found) : found
  reader.warnAboutScalars(prefix, found)
  const document = reader.check(SCHEMAS.Callers(), isBare ? { auth: value } : value, place)
  if (document === undefined) return
  reader.loading.callers.push({ ...place, document: document.auth })
  reader.loading.problems.push(...refusedHttp(document.auth, place, ['auth']))
  reader.loading.warnings.push(...sectionWarnings(document.auth, place, ['auth']))
}

/** Objects with more unknown fields get no suggestions: they are not misspelled, and each lookup costs time. */
const MOST_SUGGESTIONS = 200

/**
 * Lists unread fields. One that looks like a misspelled supported field is a warning, or a problem if that field
 * decides who may call.
 */
function warnAboutUnused(
  reader: Reader,
  value: Readonly<Record<string, unknown>>,
  place: Located<unknown>,
  kind: WorkloadKind,
): void {
  if (!isRecord(value.spec)) return
  const known = workloadFields(kind)
  let looks = 0
  for (const key of Object.keys(value.spec)) {
    if (known.includes(key)) {
      const idle = whyIdle(kind, key, value.spec[key])
      if (idle !== undefined)
        reader.loading.unused.push(place.problem(['spec', key], `not read here: ${idle}`, { at: 'key' }))
      continue
    }
    // A field of another kind is not a misspelling.
    const isForeign = FOREIGN_FIELDS.includes(key) || decidesAccess(kind, key)
    const isLookedAt = key.length > 6 && !isForeign && looks++ < MOST_SUGGESTIONS
    const why = whyNotRead(kind, key)
    const meant = isLookedAt && why === undefined ? nearest(key, known) : undefined
    const isMisspelled = meant !== undefined && value.spec[meant] === undefined
    const { loading } = reader
    const list = !isMisspelled ? loading.unused : decidesAccess(kind, meant) ? loading.problems : loading.warnings
    const message = isMisspelled
      ? unknownField(key, known)
      : why === undefined
        ? 'not read here'
        : `not read here: ${why}`
    list.push(place.problem(['spec', key], message, { at: 'key' }))
  }
  const { incomingAuth } = value.spec
  if (kind !== 'VirtualMCPServer' || !isRecord(incomingAuth)) return
  for (const key of Object.keys(incomingAuth).slice(0, MOST_SUGGESTIONS)) {
    const meant = INCOMING_AUTH_FIELDS.includes(key) ? undefined : nearest(key, INCOMING_AUTH_FIELDS)
    if (meant === undefined || incomingAuth[meant] !== undefined) continue
    const message = unknownField(key, INCOMING_AUTH_FIELDS)
    reader.loading.problems.push(place.problem(['spec', 'incomingAuth', key], message, { at: 'key' }))
  }
}

const kindText = (value: Readonly<Record<string, unknown>>): string =>
  typeof value.kind === 'string' ? value.kind.slice(0, 64) : ''

const nameText = ({ metadata }: Readonly<Record<string, unknown>>): string =>
  isRecord(metadata) && typeof metadata.name === 'string' ? metadata.name.slice(0, 253) : ''

const namespaceText = ({ metadata }: Readonly<Record<string, unknown>>): string =>
  isRecord(metadata) && typeof metadata.namespace === 'string' ? metadata.namespace.slice(0, 63) : DEFAULT_NAMESPACE
