import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseDocuments, parseObjects, resolveProxy } from '../../../../src/load/index.ts'
import { jsonSchema, type JsonSchemaName } from '../../../../src/load/publish/index.ts'
import { AUTH_SERVER_FIELDS, type FieldTable, WORKLOAD_FIELDS } from '../../../../src/resources/index.ts'

// Manifests in the shapes that people have: what becomes of each, and that every field of their kinds has its verdict.
const FOLDER = path.join(import.meta.dirname, '../../../fixtures/manifests')
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'))
const textOf = (file: string): string => readFileSync(path.join(FOLDER, file), 'utf8')

type Outcome = 'runs' | 'loads' | readonly string[]
const WAYS_OUT = 'expected --callers FILE, a ProxyConfig with "auth" among the files, or --ignore-manifest-callers'

/** File → it runs as routes; it loads, and another controller runs it; or the sentences by which it is refused. */
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  'audited.yaml': [
    'spec.rateLimiting  requests are not counted here',
    'spec.webhookConfigRef  no webhooks are asked about requests here',
  ],
  'bearer-token.yaml': 'runs',
  'header-forward.yaml': 'runs',
  'identity-assertion.yaml': 'runs',
  'login-oauth2.yaml': 'loads',
  'login-of-today.yaml': [
    'delegateClients  token exchange for another user is not supported',
    'trustedIssuers[0].expectedAudience  tokens are not exchanged here',
    'trustedIssuers[0].actorClaim  tokens are not exchanged here',
    'trustedIssuers[0].allowMayAct  tokens are not exchanged here',
    'trustedIssuers[0].allowedDelegateClients  tokens are not exchanged here',
    'storage.redis.clusterMode  a store in cluster mode is not used here',
  ],
  'login.yaml': 'runs',
  'on-behalf-of.yaml': 'runs',
  'own-authority.yaml': 'runs',
  'remote-proxy-reference.yaml': 'runs',
  'restricted-tools.yaml': [
    `spec.authzConfig  defines callers and holds policies that are not evaluated here; they cannot be converted: the primary upstream provider makes them read the claims of another token than the caller sends; ${WAYS_OUT}`,
    'spec.authzConfig  defines callers and holds policies that are not evaluated here; "kubectl get configmap policies',
    'spec.authzConfigRef  defines callers and refers to policies that are not evaluated here',
    'spec.toolConfigRef.name  "toolsOverride" of MCPToolConfig "read-only" renames tools, which is not done here',
  ],
  'roles.yaml': 'runs',
  'server.yaml': 'loads',
  'service-accounts.yaml': 'runs',
  'telemetry.yaml': 'runs',
  'token-exchange.yaml': ['type "tokenExchange" needs to know the caller, and callers are anonymous here'],
  'tool-config.yaml': 'runs',
  'virtual-server-restricted.yaml': [
    'spec.config.aggregation.excludeAllTools  each backend is a route of its own with all its tools',
    'spec.config.aggregation.defaultToolVisibility  each backend is a route of its own with all its tools',
    'spec.config.aggregation.tools  each backend is a route of its own with all its tools',
    'spec.config.audit.enabled  the audit trail is a setting of the whole proxy',
    'spec.config.rateLimiting  requests are not counted here',
    'spec.config.incomingAuth.authz  holds policies that are not evaluated here',
    'spec.incomingAuth.authzConfig  defines callers and holds policies',
  ],
  'virtual-server.yaml': 'runs',
  'workload-assertions.yaml': 'runs',
}

test.each(['MCPAuthzConfig', 'MCPWebhookConfig', 'MCPGroup'])('a %s beside them is skipped', (kind) => {
  const text = JSON.stringify({
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind,
    metadata: { name: 'a' },
    spec: {},
  })
  const loaded = parseDocuments([{ path: 'a.json', text }])
  expect([loaded.problems, loaded.skipped.map((one) => one.kind)]).toEqual([[], [kind]])
})

test('ignored fields and the reasons are listed by validate --verbose', () => {
  const { loaded } = startWith('remote-proxy-reference.yaml')
  const ignored = loaded.unused.map(({ path: at, message }) => `${at}  ${message}`)
  expect(ignored).toContain('spec.groupRef  not read here: groups belong to another controller')
  for (const name of ['remoteUrl', 'telemetryConfigRef'])
    expect(ignored.some((line) => line.startsWith(`spec.${name}`))).toBe(false)
  expect(ignored).toContain('spec.replicas  not read here: it is for the pods of a cluster')
  const quiet = { remoteUrl: 'https://a.example.com/mcp', audit: { enabled: false }, rateLimiting: {} }
  const text = JSON.stringify({
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPRemoteProxy',
    metadata: { name: 'a' },
    spec: quiet,
  })
  const { unused, problems } = parseDocuments([{ path: 'a.json', text }])
  expect(problems).toEqual([])
  expect(unused).toEqual([])
  const ofTraces = startWith('telemetry.yaml').loaded.unused.map(({ path: at, message }) => `${at}  ${message}`)
  expect(ofTraces).toEqual([
    'spec.openTelemetry.metrics.enabled  not read here: metrics are scraped from the admin listener, and not sent',
    "spec.openTelemetry.useLegacyAttributes  not read here: attributes have the names of OpenTelemetry's conventions",
    'spec.prometheus.enabled  not read here: metrics are scraped from the admin listener, and not sent',
  ])
})

/** Messages of a proxy started with the file. */
function startWith(file: string) {
  const loaded = parseDocuments([{ path: file, text: textOf(file) }])
  const { config, problems = [] } = resolveProxy(loaded, { listen: '127.0.0.1:0' })
  return { loaded, config, problems: problems.map(({ path: at, message }) => `${at}  ${message}`) }
}

/** Problems of each object alone. */
const parseEach = (objects: readonly unknown[]) => parseObjects(objects).problems

describe('each manifest runs, loads, or is refused by a sentence', () => {
  test.each(FILES)('%s', (file) => {
    const { loaded, config, problems } = startWith(file)
    const outcome = OUTCOMES[file]
    expect(problems.filter((problem) => problem.includes('unknown field'))).toEqual([])
    if (outcome === 'runs') {
      expect(problems).toEqual([])
      expect(config?.routes.length).toBeGreaterThan(0)
    } else if (outcome === 'loads') expect(loaded.problems).toEqual([])
    else for (const sentence of outcome ?? ['no outcome']) expect(problems.join('\n')).toContain(sentence)
  })

  test('the table has every file, and none that is gone', () => {
    expect(Object.keys(OUTCOMES)).toEqual(FILES.toSorted())
  })

  test.each(FILES)('what a cluster says of the objects of %s is what is said of the file', (file) => {
    const objects = parseAllDocuments(textOf(file)).map((document) => document.toJS() as unknown)
    const words = (problems: readonly { readonly path: string; readonly message: string }[]): string[] =>
      problems.map(({ path: at, message }) => `${at}: ${message}`).toSorted()
    const alone = parseEach(objects)
    const { problems } = parseDocuments([{ path: file, text: textOf(file) }])
    expect(words(alone)).toEqual(words(problems))
  })
})

interface Part {
  readonly properties?: Readonly<Record<string, Part>>
  readonly items?: Part
  readonly additionalProperties?: Part | boolean
}
const FIELDS = JSON.parse(textOf('fields.json')) as Readonly<Record<string, readonly string[]>>

/** Whether a schema of the project has a field at this path. */
function isInSchema(spec: Part | undefined, field: string): boolean {
  let part = spec
  for (const step of field.split('.')) {
    const name = step.replace('[]', '')
    if (name === '*') part = typeof part?.additionalProperties === 'object' ? part.additionalProperties : undefined
    else part = part?.properties?.[name]
    if (step.endsWith('[]')) part = part?.items
    if (part === undefined) return false
  }
  return true
}

/** Whether the field, or one that it is in, has a row. */
function isTabled(kind: string, field: string): boolean {
  const table: FieldTable =
    kind === 'MCPExternalAuthConfig'
      ? Object.fromEntries(Object.entries(AUTH_SERVER_FIELDS).map(([at, row]) => [`embeddedAuthServer.${at}`, row]))
      : (WORKLOAD_FIELDS[kind as keyof typeof WORKLOAD_FIELDS] ?? {})
  return Object.keys(table).some(
    (row) =>
      field === row || field.startsWith(`${row}.`) || field.startsWith(`${row}[]`) || row.startsWith(`${field}.`),
  )
}

/** Paths of the fields that a value has. */
function* fieldsOf(value: unknown, prefix: string): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* fieldsOf(item, `${prefix}[]`)
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) {
      const here = prefix === '' ? name : `${prefix}.${name}`
      yield here
      yield* fieldsOf(inner, here)
    }
}

describe.each(Object.keys(FIELDS))('every field of %s', (kind) => {
  test('has its verdict: our schema has it, or the table says what becomes of it', () => {
    const { properties }: Part = jsonSchema(kind as JsonSchemaName)
    const unsaid = (FIELDS[kind] ?? []).filter(
      (field) => !isInSchema(properties?.['spec'], field) && !isTabled(kind, field),
    )
    expect(unsaid).toEqual([])
  })

  test('is in a manifest here', () => {
    const written = new Set<string>()
    for (const file of FILES)
      for (const document of parseAllDocuments(textOf(file))) {
        const { kind: its, spec } = document.toJS() as { kind: string; spec: unknown }
        if (its === kind) for (const field of fieldsOf(spec, '')) written.add(field)
      }
    const isThere = (field: string): boolean =>
      field.includes('*')
        ? [...written].some((one) =>
            new RegExp(`^${field.replaceAll('*', '[^.]+').replaceAll('[]', '\\[\\]')}$`).test(one),
          )
        : written.has(field)
    expect((FIELDS[kind] ?? []).filter((field) => !isThere(field))).toEqual([])
  })
})
