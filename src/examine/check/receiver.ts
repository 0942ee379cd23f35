import { openReceiverClient, type Services } from '../../compose/proxy/index.ts'
import { OutboundError } from '../../core/index.ts'
import type { ResolvedTelemetry } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { checkFile } from './files.ts'
import { about, type CheckResult } from './result.ts'
import { checkSecret, isUsable } from './secrets.ts'

/** Tests the trace receiver: secrets, CA certificates, and an export without spans. */
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
  if (usable.includes(false)) return [...lines, about('traces', name).skipped('not tried: a secret is unusable')]
  return [...lines, await ask(telemetry, services)]
}

const LOOK = 'Check endpoint, headers and CA certificates of the MCPTelemetryConfig.'

async function ask(telemetry: ResolvedTelemetry, services: Services): Promise<CheckResult> {
  const line = about('traces', telemetry.name)
  const { headersOfExport } = await import('../../telemetry/index.ts')
  const client = openReceiverClient(telemetry, services.receivers)
  try {
    const headers = headersOfExport({ ...telemetry, ...client })
    // An ExportTraceServiceRequest without spans is empty.
    const { status } = await client.outbound.request({ method: 'POST', url: telemetry.url, headers, body: '' })
    return status >= 200 && status < 300
      ? line.ok('accepts exports')
      : line.failed(`status ${status}; expected 2xx`, LOOK)
  } catch (error) {
    if (error instanceof OutboundError) return line.failed(`no response: ${error.kind}`, LOOK)
    return line.thrown(error)
  } finally {
    await client.outbound.close()
  }
}
