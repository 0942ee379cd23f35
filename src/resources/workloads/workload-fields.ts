import { z } from 'zod'
import { httpUrl, objectName } from '../../fields/index.ts'

// Workload specs belong to other controllers: unknown fields are accepted, also in references.
export const reference = () =>
  z.looseObject({ name: objectName().describe('Name of an MCPExternalAuthConfig in the same namespace.') })
export const EXTERNAL_AUTH = 'How the workload authenticates to the external service.'

export const resourceUrl = () =>
  httpUrl().optional().describe('URL of the protected resource. Extends the specification.')
