import { EXIT, UsageError } from '../compose/index.ts'
import { runOperator } from '../compose/operator/index.ts'
import { parseGoDuration } from '../fields/index.ts'
import { DEFAULT_API_GROUP } from '../load/index.ts'
import {
  DEFAULT_POD_SETTINGS,
  type EgressRule,
  type ProxyPolicy,
  readEgressRule,
  readProxyPolicy,
} from '../operator/index.ts'
import { loggedCommand } from './command.ts'
import { OPERATOR_SPEC } from './operator-options.ts'
import type { Parsed } from './options/options.ts'
import { serve } from './serve.ts'

/** `extauth operator`: runs until stopped, or until it loses the Lease. */
export const runOperatorCommand = loggedCommand(OPERATOR_SPEC, 'info', async ({ options, io, log }) => {
  if (options.flag('secrets-by-label') && !options.flag('watch-secrets'))
    throw new UsageError('--secrets-by-label requires --watch-secrets, which reads the labels')
  const ended = await serve({ io, log }, async () => {
    const operator = await runOperator({
      apiGroup: options.text('api-group') ?? DEFAULT_API_GROUP,
      namespace: options.text('namespace'),
      ownNamespace: options.text('operator-namespace'),
      image: options.text('image'),
      podName: options.text('pod-name'),
      watchSecrets: options.flag('watch-secrets'),
      restrictPodTemplate: options.flag('restrict-pod-template'),
      secretsByLabel: options.flag('secrets-by-label'),
      pods: {
        fixedUser: !options.flag('platform-user'),
        dns: egressOf(options, 'dns-egress') ?? DEFAULT_POD_SETTINGS.dns,
        apiServer: egressOf(options, 'api-server-egress'),
        policy: policyOf(options),
      },
      writesStatus: options.flag('write-status'),
      webhook: webhookOf(options),
      admin: options.text('admin') ?? ':8081',
      cluster: { kubeconfig: options.text('kubeconfig'), context: options.text('context') },
      env: io.env,
      log,
    })
    return { banner: '', ended: operator.lost, close: () => operator.close() }
  })
  return ended === 'lost' ? EXIT.failed : EXIT.fine
})

function policyOf(options: Parsed): ProxyPolicy {
  const text = options.text('proxy-network-policy')
  return (text === undefined ? undefined : readProxyPolicy(text)) ?? DEFAULT_POD_SETTINGS.policy
}

function egressOf(options: Parsed, name: 'dns-egress' | 'api-server-egress'): EgressRule | undefined {
  const text = options.text(name)
  return text === undefined ? undefined : readEgressRule(text)
}

function webhookOf(options: Parsed) {
  const address = options.text('webhook-address') ?? ':9443'
  if (address === 'off') return undefined
  const lifetime = options.text('webhook-cert-lifetime')
  return {
    address,
    service: options.text('webhook-service') ?? 'extauth-operator',
    names: options.list('webhook-names'),
    lifetimeMs: lifetime === undefined ? undefined : parseGoDuration(lifetime),
    certificateDirectory: options.text('webhook-cert-dir'),
  }
}
