import { INSPECTOR_MODES, type InspectorMode } from '../../resources/index.ts'
import { parseSize } from '../../fields/index.ts'
import { INSPECT_SIZE, oneOf } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'
import type { ProxyProcessOptions } from '../../compose/proxy/index.ts'

/** Options of the inspector, for all commands that run a proxy. */
export const inspectorOptions = (fallback: string) =>
  ({
    inspector: {
      type: 'string',
      is: oneOf(INSPECTOR_MODES),
      value: 'MODE',
      help: `Recorded requests on /inspect of the admin listener: off, heads or bodies. Default ${fallback}.`,
    },
    'inspect-bytes': {
      type: 'string',
      is: INSPECT_SIZE,
      value: 'SIZE',
      help: 'Memory for recorded requests, oldest evicted first. Default 8Mi.',
    },
  }) as const satisfies Readonly<Record<string, OptionSpec>>

/** Inspector options as parsed. */
export function inspectorOf(options: Parsed): Pick<ProxyProcessOptions, 'inspector' | 'inspectBytes'> {
  const size = options.text('inspect-bytes')
  return {
    // The option table validates the value.
    inspector: options.text('inspector') as InspectorMode | undefined,
    inspectBytes: size === undefined ? undefined : parseSize(size),
  }
}
