import { z } from 'zod'

/** Schemas with an ID here become `components.schemas` of the OpenAPI document. */
export const apiSchemas = z.registry<{ id: string }>()

const named = <S extends z.ZodType>(id: string, schema: S): S => {
  apiSchemas.add(schema, { id })
  return schema
}

/** `namespace/name` with a reverse-DNS namespace and exactly one slash (MCP registry API, ServerDetail.name). */
export const SERVER_NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/

/** Length in code points, as JSON Schema counts. */
const isShort = (value: string, most: number): boolean => value.length <= most || Array.from(value).length <= most

const text = (max: number) =>
  z
    .string()
    .min(1)
    .refine((value) => isShort(value, max), { message: `more than ${max} characters` })
    .meta({ maxLength: max })

/** Any URI that a client may show, except those that a browser runs or reads locally. */
const link = z.url({ protocol: /^(?!(?:javascript|vbscript|data|blob|file)$)/i }).meta({ format: 'uri' })

/** URL of a transport. The client fills in `{variables}`, so it may not be a URL yet. */
const urlTemplate = z.string().regex(/^(?:https?:\/\/\S+|\{[a-zA-Z_][a-zA-Z0-9_]*\}\S*)$/)

const inputFields = {
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  value: z.string().optional(),
  isSecret: z.boolean().optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
  choices: z.array(z.string()).optional(),
}
const input = named('Input', z.looseObject(inputFields))
const inputWithVariables = { ...inputFields, variables: z.record(z.string(), input).optional() }
const keyValueInput = named('KeyValueInput', z.looseObject({ name: z.string(), ...inputWithVariables }))

const positionalArgument = z
  .looseObject({
    type: z.literal('positional'),
    valueHint: z.string().optional(),
    isRepeated: z.boolean().optional(),
    ...inputWithVariables,
  })
  .refine((argument) => argument.valueHint !== undefined || argument.value !== undefined, {
    message: 'a positional argument needs a valueHint or a value',
  })
const namedArgument = z.looseObject({
  type: z.literal('named'),
  name: z.string(),
  isRepeated: z.boolean().optional(),
  ...inputWithVariables,
})
const argument = named('Argument', z.discriminatedUnion('type', [positionalArgument, namedArgument]))

const stdio = z.looseObject({ type: z.literal('stdio') })
const overHttp = { url: urlTemplate, headers: z.array(keyValueInput).optional() }
const variables = { variables: z.record(z.string(), input).optional() }
const localTransport = z.discriminatedUnion('type', [
  stdio,
  z.looseObject({ type: z.literal('streamable-http'), ...overHttp }),
  z.looseObject({ type: z.literal('sse'), ...overHttp }),
])
const remoteTransport = named(
  'RemoteTransport',
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('streamable-http'), ...overHttp, ...variables }),
    z.looseObject({ type: z.literal('sse'), ...overHttp, ...variables }),
  ]),
)

const packageSchema = named(
  'Package',
  z.looseObject({
    registryType: z.string(),
    registryBaseUrl: link.optional(),
    identifier: z.string(),
    version: z
      .string()
      .min(1)
      .refine((version) => version !== 'latest', { message: 'a package version is a version, not "latest"' })
      .optional(),
    fileSha256: z
      .string()
      .regex(/^[a-f0-9]{64}$/)
      .optional(),
    runtimeHint: z.string().optional(),
    transport: localTransport,
    runtimeArguments: z.array(argument).optional(),
    packageArguments: z.array(argument).optional(),
    environmentVariables: z.array(keyValueInput).optional(),
  }),
)

const repository = named(
  'Repository',
  z.looseObject({ url: link, source: z.string(), id: z.string().optional(), subfolder: z.string().optional() }),
)

const icon = named(
  'Icon',
  z.looseObject({
    src: link.refine((uri) => isShort(uri, 255), { message: 'more than 255 characters' }).meta({ maxLength: 255 }),
    mimeType: z.enum(['image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp']).optional(),
    sizes: z.array(z.string().regex(/^(\d+x\d+|any)$/)).optional(),
    theme: z.enum(['light', 'dark']).optional(),
  }),
)

/** `^1.2`, `>=1`, `1.x`, `1.*`, `1 - 2`, `1 || 2`: a range is not a version, and `latest` is reserved. */
const VERSION_RANGE = /^[\^~<>=]|(?:^|\.)[xX*](?:\.|$)| - |\|\|/

/** The published `server.json` (schema 2025-12-11). Other fields are kept, as its schema allows. */
export const serverDetail = named(
  'ServerDetail',
  z.looseObject({
    $schema: z.string().optional(),
    name: z.string().min(3).max(200).regex(SERVER_NAME),
    description: text(100),
    title: text(100).optional(),
    version: text(255).refine((version) => version !== 'latest' && !VERSION_RANGE.test(version), {
      message: 'a server version is one version, not a range or "latest"',
    }),
    websiteUrl: link.optional(),
    repository: repository.optional(),
    icons: z.array(icon).optional(),
    packages: z.array(packageSchema).optional(),
    remotes: z.array(remoteTransport).optional(),
    _meta: z.looseObject({}).optional(),
  }),
)

/** Name of the field of `_meta` that the registry itself sets. */
export const OFFICIAL_META = 'io.modelcontextprotocol.registry/official'

const dateTime = z.iso.datetime({ offset: true })

const officialMeta = named(
  'OfficialMeta',
  z.looseObject({
    status: z.enum(['active', 'deprecated', 'deleted']).optional(),
    statusMessage: z
      .string()
      .refine((message) => isShort(message, 500), { message: 'more than 500 characters' })
      .optional(),
    statusChangedAt: dateTime.optional(),
    publishedAt: dateTime.optional(),
    updatedAt: dateTime.optional(),
    isLatest: z.boolean().optional(),
  }),
)

/** One entry of the API: the server and the registry's metadata. */
export const serverResponse = named(
  'ServerResponse',
  z.looseObject({
    server: serverDetail,
    _meta: z.looseObject({ [OFFICIAL_META]: officialMeta.optional() }).optional(),
  }),
)

export const serverList = named(
  'ServerList',
  z.object({
    servers: z.array(serverResponse),
    metadata: z.object({ count: z.int().min(0), nextCursor: z.string().optional() }),
  }),
)

export const apiFailure = named('Failure', z.object({ error: z.string(), error_description: z.string() }))

export type ServerResponse = z.output<typeof serverResponse>
export type OfficialMeta = z.output<typeof officialMeta>
