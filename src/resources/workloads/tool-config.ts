import { z } from 'zod'
import { objectName } from '../../fields/index.ts'
import { referredConfig, type ReferredConfig } from '../referred-config.ts'

const MAX_TOOLS = 1000

const toolName = () =>
  z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[^*\p{Cc}]+$/u, { error: 'expected the name of one tool on one line, without `*`' })

const spec = () =>
  z.strictObject({
    toolsFilter: z
      .array(toolName())
      .max(MAX_TOOLS)
      .optional()
      .describe('Names of the tools that callers may use; lists show no others. Empty: all tools.'),
    toolsOverride: z
      .unknown()
      .optional()
      .describe('New names and descriptions of tools. A proxy that refers to it is refused: tools are not renamed.'),
  })

/**
 * The resource MCPToolConfig: the tools of all workloads that reference it (`toolConfigRef`). Extends the
 * specification.
 */
export const mcpToolConfig = () => referredConfig('MCPToolConfig', spec())

export interface MCPToolConfig extends ReferredConfig<'MCPToolConfig', z.output<ReturnType<typeof spec>>> {}

/** `toolConfigRef` of a workload. */
export const toolConfigRef = () =>
  z.looseObject({ name: objectName().describe('Name of an MCPToolConfig in the same namespace.') })

export const TOOLS = 'Which tools callers may use, from an MCPToolConfig.'
