import { INSPECTOR_MODES, type InspectorMode } from '../../resources/index.ts'
import { parseSize } from '../../fields/index.ts'
import { INSPECT_SIZE, oneOf } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'
import type { ProxyProcessOptions } from '../../compose/proxy/index.ts'

/** The options of the inspector, for every command that runs a proxy. */
export const inspectorOptions = (fallback: string) =>
  ({
    inspector: {
      type: 'string',
      is: oneOf(INSPECTOR_MODES),
      value: 'MODE',
      help: `What /inspect of the admin listener shows of requests: off, heads or bodies. Default ${fallback}.`,
    },
    'inspect-bytes': {
      type: 'string',
      is: INSPECT_SIZE,
      value: 'SIZE',
      help: 'Memory for the requests that it shows; the oldest go first. Default 8Mi.',
    },
  }) as const satisfies Readonly<Record<string, OptionSpec>>

/** What was said of the inspector on the command line. */
export function inspectorOf(options: Parsed): Pick<ProxyProcessOptions, 'inspector' | 'inspectBytes'> {
  const size = options.text('inspect-bytes')
  return {
    // The table has checked it.
    inspector: options.text('inspector') as InspectorMode | undefined,
    inspectBytes: size === undefined ? undefined : parseSize(size),
  }
}
