import { z } from 'zod'
import { isCursor } from './listing/cursor.ts'
import { apiFailure, serverList, serverResponse } from './server-json.ts'

const DEFAULT_LIMIT = 30
const MAX_LIMIT = 100

/** Query values are strings: only digits are a number, so `0x10`, ` 5` and an empty value are rejected. */
const digits = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value

/** A `+` in a query decodes to a space; in a date, it was the sign of the offset. */
const withOffsetSign = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/ (\d\d:\d\d)$/, '+$1').toUpperCase() : value

const flag = (value: unknown): unknown => (value === 'true' ? true : value === 'false' ? false : value)

const limit = z.preprocess(digits, z.int().min(1).max(MAX_LIMIT)).default(DEFAULT_LIMIT)
const updatedSince = z.preprocess(
  withOffsetSign,
  z.iso.datetime({ offset: true }).refine((time) => /T\d\d:\d\d:\d\d/.test(time), { error: 'seconds are needed' }),
)
const includeDeleted = z.preprocess(flag, z.boolean()).default(false)

export const listQuery = z.object({
  cursor: z
    .string()
    .min(1)
    .refine(isCursor)
    .optional()
    .describe('metadata.nextCursor of the previous page, unchanged.'),
  limit: limit.describe('Entries per page.'),
  search: z.string().max(255).optional().describe('Part of name, title or description, in any case.'),
  updated_since: updatedSince.optional().describe('Only entries updated at or after this time (RFC 3339).'),
  version: z.string().min(1).max(255).optional().describe('`latest`, or exactly this version.'),
  include_deleted: includeDeleted.describe('Includes deleted entries; always with updated_since.'),
})

export const versionsQuery = z.object({ include_deleted: includeDeleted.describe('Includes deleted versions.') })

const registryName = z.string().min(1).describe('Name of the registry.')
const serverName = z.string().min(3).describe('Name of the server, its slash encoded: `com.example%2Fweather`.')

export const listParams = z.object({ name: registryName })
export const versionsParams = z.object({ name: registryName, serverName })
export const versionParams = versionsParams.extend({ version: z.string().min(1).describe('A version, or `latest`.') })

/** Expected values by parameter: our own text, never the received value. */
export const PARAMETER_HINTS: Readonly<Record<string, string>> = {
  limit: `limit is a whole number from 1 to ${MAX_LIMIT}.`,
  cursor: 'cursor is the unchanged metadata.nextCursor of a page.',
  search: 'search is a string of at most 255 characters, given once.',
  updated_since: 'updated_since is an RFC 3339 time such as 2026-01-31T12:00:00Z.',
  version: 'version is latest or one version, given once.',
  include_deleted: 'include_deleted is true or false.',
}

/** Message for an API path with an unknown name. */
export const NOT_FOUND = 'Registry, server or version not found.'

/** A JSON response for the OpenAPI document. */
export interface DescribedAnswer {
  readonly description: string
  readonly schema: z.ZodType
}

const failure = (description: string): DescribedAnswer => ({ description, schema: apiFailure })

/** Responses of every endpoint besides its own; 401 only if tokens are required. */
export const failureResponses = (isProtected: boolean): Readonly<Record<string, DescribedAnswer>> => ({
  400: failure('The request is malformed.'),
  ...(isProtected
    ? { 401: failure('The token is missing or invalid; WWW-Authenticate has the URL of the discovery document.') }
    : {}),
  404: failure(NOT_FOUND),
  503: failure('The data or an identity provider are unavailable.'),
})

export const listAnswer = { description: 'One page, in the order of names and versions.', schema: serverList }
export const versionsAnswer = { description: 'All versions by date of publication, newest first.', schema: serverList }
export const versionAnswer = { description: 'One version.', schema: serverResponse }

/** RFC 9728 §2. */
export const resourceMetadata = z.looseObject({
  resource: z.url(),
  authorization_servers: z.array(z.url()).optional(),
  scopes_supported: z.array(z.string()).optional(),
  bearer_methods_supported: z.array(z.string()).optional(),
  resource_documentation: z.url().optional(),
})
export const metadataAnswer = {
  description: 'OAuth protected resource metadata (RFC 9728).',
  schema: resourceMetadata,
}
