import { openReceiverClient, type Services } from '../../compose/proxy/index.ts'
import { OutboundError } from '../../core/index.ts'
import type { ResolvedTelemetry } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { checkFile } from './files.ts'
import { about, type CheckResult } from './result.ts'
import { checkSecret, isUsable } from './secrets.ts'

/** Where traces go: each secret and the authorities, and whether the receiver takes an export without a span. */
export async function checkReceiver(
  telemetry: ResolvedTelemetry,
  context: CheckContext,
  services: Services,
): Promise<readonly CheckResult[]> {
  const { name, secretHeaders, caCertPath } = telemetry
  const needed = secretHeaders.map(({ ref }, index) => ({
    secret: { value: ref, holds: 'header value' as const },
    field: `${name} openTelemetry.sensitiveHeaders.${index}.secretKeyRef`,
  }))
  const lines = (await Promise.all(needed.map(({ secret, field }) => checkSecret(secret, field, context)))).flat()
  if (caCertPath !== undefined) {
    const file = { holds: 'certificates' as const, path: caCertPath }
    lines.push(...checkFile(file, `${name} openTelemetry.caBundleRef`, context.clock.now()))
  }
  const usable = await Promise.all(needed.map(({ secret }) => isUsable(secret, context)))
  if (usable.includes(false)) return [...lines, about('traces', name).skipped('without its secrets nothing is sent')]
  return [...lines, await ask(telemetry, services)]
}

const LOOK = 'Look at the endpoint, its headers and the authorities of the MCPTelemetryConfig.'

async function ask(telemetry: ResolvedTelemetry, services: Services): Promise<CheckResult> {
  const line = about('traces', telemetry.name)
  const { headersOfExport } = await import('../../telemetry/index.ts')
  const client = openReceiverClient(telemetry, services.receivers)
  try {
    const headers = headersOfExport({ ...telemetry, ...client })
    // An ExportTraceServiceRequest without spans has no bytes.
    const { status } = await client.outbound.request({ method: 'POST', url: telemetry.url, headers, body: '' })
    return status >= 200 && status < 300
      ? line.ok('takes what is sent')
      : line.failed(`it answers with status ${status}`, LOOK)
  } catch (error) {
    if (error instanceof OutboundError) return line.failed(`no answer: ${error.kind}`, LOOK)
    return line.thrown(error)
  } finally {
    await client.outbound.close()
  }
}
