import { z } from 'zod'
import { httpUrl, objectName } from '../../fields/index.ts'

// Specs of workloads belong to other controllers: what is not ours is let through, here and in references.
export const reference = () =>
  z.looseObject({ name: objectName().describe('Name of an MCPExternalAuthConfig in the same namespace.') })
export const EXTERNAL_AUTH = 'How the workload authenticates to the external service.'

export const resourceUrl = () =>
  httpUrl().optional().describe('URL of the protected resource. Extends the specification.')

/** A reference and where it is written. */
export interface WrittenReference {
  readonly name: string
  readonly path: readonly PropertyKey[]
}

export const written = (
  found: { readonly name: string } | undefined,
  path: readonly PropertyKey[],
): WrittenReference | undefined => (found === undefined ? undefined : { name: found.name, path })

/** One MCP server behind a workload: what becomes a route. */
export interface Backend {
  readonly name: string
  readonly url: string
  /** Where the URL is written. */
  readonly urlPath: readonly PropertyKey[]
  /** The MCPExternalAuthConfig that it is reached by. */
  readonly externalAuth: WrittenReference | undefined
}
