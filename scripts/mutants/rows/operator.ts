import { within } from '../mutation.ts'

/** Guards of `src/operator`. */
export default [
  ...within(
    'src/operator/config/reconcile-config.ts',
    ['test/unit/operator/reconcile-config.test.ts'],
    [['pods hold the config that they were injected for', ' || snapshot.pods.length > 0', '']],
  ),
  ...within(
    'src/operator/events.ts',
    ['test/unit/operator/events.test.ts'],
    [
      [
        'the note of an event has at most as many bytes as are taken',
        'if (bytes.length <= MAX_NOTE_BYTES) return note',
        'if (note.length <= MAX_NOTE_BYTES) return note',
      ],
    ],
  ),
  ...within(
    'src/operator/executor.ts',
    ['test/unit/operator/executor.test.ts'],
    [
      ['who does not lead writes nothing', "if (!mayWrite()) throw new KubeError(0, 'not the leader')", ''],
      [
        'what is removed is that very object',
        'await client.remove(type, namespace, name, uid)',
        'await client.remove(type, namespace, name)',
      ],
      [
        'finalizers are changed only as they were seen',
        '  resourceVersion === undefined ? {} : { resourceVersion }',
        '  resourceVersion === undefined ? {} : {}',
      ],
      ['events have a bound', 'events.slice(0, MOST_EVENTS - waiting.length)', 'events'],
      [
        'a write that failed is tried again',
        'return client.apply(type, object)\n',
        'return client.apply(type, object).catch(ignoreGone)\n',
      ],
      ['objects of other owners are not adopted', "if (action.do === 'apply') await refuseForeign(action)", ''],
      [
        'a copied annotation makes nothing ours that has another owner',
        'if (owner !== undefined) return owner.uid === controllerOf(wanted)?.uid',
        'if (owner !== undefined && owner.uid === controllerOf(wanted)?.uid) return true',
      ],
    ],
  ),
  ...within(
    'src/operator/injection/callers.ts',
    ['test/unit/operator/injection-callers.test.ts'],
    [
      [
        "callers that can't be used are refused",
        'if (problems !== undefined)',
        'if (config === undefined && problems?.length === 0)',
      ],
    ],
  ),
  ...within(
    'src/operator/injection/pod-patch.ts',
    ['test/unit/operator/injection.test.ts'],
    [
      ['the sidecar comes first', '[container, ...others]', '[...others, container]'],
      ['containers of the pod stay', '.filter(({ name }) => name !== CONTAINER)', '.filter(() => false)'],
      [
        'volumes of the pod stay',
        '[...kept, ...volumes.map(({ volume }) => volume)]',
        'volumes.map(({ volume }) => volume)',
      ],
      ['a container in front of the sidecar does not stay there', '  found.name === wanted.name &&\n', ''],
      [
        'a copied annotation does not stand for the sidecar',
        'annotations?.[settings.keys.injected] === hash && isThere',
        'annotations?.[settings.keys.injected] === hash',
      ],
      ['nor for what the sidecar runs', '  found.command === undefined &&\n', ''],
      ['the backend is reached on loopback', '`http://127.0.0.1:${targetPort}`', '`http://0.0.0.0:${targetPort}`'],
      [
        'a sidecar has a token of the cluster for service accounts only',
        'settings.needsClusterToken ?',
        "settings.image !== '' ?",
        ['test/unit/operator/injection-callers.test.ts'],
      ],
      [
        'a pod lives long enough to drain',
        'graceSeconds < LEAST_GRACE_SECONDS',
        'graceSeconds < 0',
        ['test/unit/operator/injection-callers.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/operator/injection/request.ts',
    ['test/unit/operator/injection.test.ts'],
    [
      ['a pod on the network of its node is refused', 'if (hostNetwork === true)', 'if (hostNetwork === false)'],
      [
        'only a pod that asks is injected',
        "if (labels[keys.inject] !== 'true') return { wanted: false }",
        'if (labels[keys.inject] === undefined) return { wanted: false }',
      ],
      ['the port of probes is taken', 'if (used === RESERVED_PORT) problems', 'if (used === 0) problems'],
      [
        'proxy and server have two ports',
        'if (listenPort !== 0 && listenPort === targetPort)',
        'if (listenPort === 0)',
      ],
      ['a name is one', 'value.length > 253 || !DNS_NAME.test(value)', 'value.length > 253'],
      ['a misspelled annotation is refused', 'problems.push(...unknownAnnotations(annotations, keys))', ''],
    ],
  ),
  ...within(
    'src/operator/key-refs.ts',
    ['test/unit/operator/pods.test.ts'],
    [['secrets of callers are found', 'if (/Refs?$/.test(field) && typeof name', "if (field === 'ref' && typeof name"]],
  ),
  ...within(
    'src/operator/key-refs.ts',
    ['test/unit/operator/connections.test.ts'],
    [['keys that seal connections are mounted', '/Refs?$/.test(field)', "field.endsWith('Ref')"]],
  ),
  ...within(
    'src/operator/remote-proxy/read-spec.ts',
    ['test/unit/operator/connections.test.ts'],
    [
      ['secrets of connections are mounted', "      spec['connections'],\n", ''],
      ['pods reach the services of connections', '      ...accounts.urls,\n', ''],
      [
        'pods reach discovered authorization servers',
        "providers.some(({ type }) => type === 'mcp') ? [HTTPS_PORT] : []",
        '[]',
      ],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/reconcile-remote-proxy.ts',
    ['test/unit/operator/connections.test.ts'],
    [
      [
        'several pods with connections in memory are reported',
        "connections === 'memory' ?",
        "connections === 'store' ?",
      ],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/snapshot.ts',
    ['test/unit/operator/connections.test.ts'],
    [
      [
        'logins for callers of another object are not judged at admission',
        "callers.length === 0 || !problem.startsWith('spec.connections.login')",
        'problem.length > 0',
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/decisions.ts',
    ['test/unit/operator/connections.test.ts'],
    [['a sidecar has no connections', "used?.source === 'connection'", 'used?.source === undefined']],
  ),
  ...within(
    'src/operator/observed.ts',
    ['test/unit/operator/tenants.test.ts'],
    [
      [
        'a label says true',
        "metadata.labels?.[USABLE_LABEL] === 'true'",
        'metadata.labels?.[USABLE_LABEL] !== undefined',
      ],
    ],
  ),
  ...within(
    'src/operator/plans.ts',
    ['test/unit/operator/shared-configs.test.ts'],
    [
      [
        'a referenced callers config is kept',
        'workloads: references.workloadsOf(configKey(kind, namespace, name))',
        'workloads: []',
      ],
    ],
  ),
  ...within(
    'src/operator/pod-settings.ts',
    ['test/unit/operator/pods.test.ts'],
    [
      ['pods reach no metadata service', 'except: METADATA_RANGES.ipv4', 'except: []'],
      ['a network rule of the command line has a peer', '  .min(1)\n  .max(MAX_ENTRIES)\n', '  .max(MAX_ENTRIES)\n'],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/network-policy.ts',
    ['test/unit/operator/pods.test.ts'],
    [
      [
        'the API server is reached where it is and nowhere else',
        'if (hasOwnRule && API_SERVER.test(hostname)) return []',
        '',
      ],
      ['both directions are bounded', "policyTypes: ['Ingress', 'Egress']", "policyTypes: ['Ingress']"],
      [
        'metrics are for those who are named',
        '...(proxy.metricsFrom.length === 0\n          ? []',
        '...(proxy.metricsFrom.length < 0\n          ? []',
      ],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/objects.ts',
    ['test/unit/operator/pods.test.ts'],
    [
      ['the account that is made names the role', 'annotations: { [IRSA_ROLE]: proxy.awsRoleArn }', 'annotations: {}'],
      [
        'what is owned says whose it is',
        '{ automountServiceAccountToken: false }',
        '{ automountServiceAccountToken: true }',
      ],
      [
        'what the controller of Deployments writes is left to it',
        ".filter(([name]) => !name.startsWith('deployment.kubernetes.io/'))",
        '',
        ['test/unit/operator/resource-overrides.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/operator/proxy-container.ts',
    ['test/unit/operator/pods.test.ts'],
    [
      ['a container gains no rights', 'allowPrivilegeEscalation: false', 'allowPrivilegeEscalation: true'],
      ['keys that are not named are not mounted', '          items: itemsOf(keys),\n', ''],
      [
        'nothing that is mounted can be written',
        'mountPath: path, readOnly: true',
        'mountPath: path, readOnly: false',
        ['test/unit/operator/injection.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/pod.ts',
    ['test/unit/operator/pods.test.ts'],
    [
      [
        'pods have no token of the cluster',
        'automountServiceAccountToken: false,\n      enableServiceLinks',
        'automountServiceAccountToken: true,\n      enableServiceLinks',
      ],
      [
        'who the proxy is to the cluster is mounted where it is needed',
        "...(proxy.needsClusterToken ? [clusterMount('cluster', mode)] : [])",
        "clusterMount('cluster', mode)",
      ],
      ['another AWS role recreates the pods', '{ [POD_AWS_ROLE]: proxy.awsRoleArn }', '{}'],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/reconcile-remote-proxy.ts',
    ['test/unit/operator/reconcile-remote-proxy.test.ts'],
    [
      [
        'pods read no foreign document',
        "type.kind === 'ConfigMap' ? unexpectedKeys(object, before) : []",
        '([] as string[])',
      ],
      [
        'a proxy without accepted callers does not run',
        '[externalAuth, authServer, callers, telemetry, tools].every(',
        '[externalAuth, authServer, telemetry, tools].every(',
        ['test/unit/operator/shared-configs.test.ts'],
      ],
      [
        'foreign service accounts and budgets stay',
        'object === undefined || !isOwned(object, snapshot.object) ? []',
        'object === undefined ? []',
      ],
      [
        'so do those of another proxy',
        'some(({ uid }) => uid === owner.metadata.uid) === true',
        'some(({ uid }) => uid !== undefined) === true && owner.kind !== ""',
      ],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/remote-proxy.ts',
    ['test/unit/operator/pods.test.ts'],
    [['what is owned goes with its owner', '    ownerReferences: [ownerOf(proxy)],\n', '']],
  ),
  ...within(
    'src/operator/remote-proxy/snapshot.ts',
    ['test/unit/operator/tenants.test.ts'],
    [
      [
        'a restricted pod has no variables of others',
        "  'resourceOverrides',\n  'ingress.annotations',",
        "  'ingress.annotations',",
        ['test/unit/operator/resource-overrides.test.ts'],
      ],
      ['a restricted pod has no template', "  'podTemplateSpec',\n", ''],
      ['a restricted pod has no other account', "  'serviceAccountName',\n", ''],
      ['a restricted pod has no role of AWS', "  'awsRoleArn',\n", ''],
      ['a restricted pod has no other image', "  'image',\n", ''],
      ['a restricted pod has no more egress', "  'egress',\n", ''],
      ['a stored object is restricted too', '...(settings.restrictPodTemplate ? restrictedFields(object) : []),', ''],
    ],
  ),
  ...within(
    'src/operator/remote-proxy/strategic-merge.ts',
    ['test/unit/operator/pods.test.ts'],
    [['containers are merged by name', "  containers: ['name'],\n  initContainers", '  initContainers']],
  ),
  ...within(
    'src/operator/secret-states.ts',
    ['test/unit/operator/tenants.test.ts'],
    [
      [
        'a Secret without its label is given to no pod',
        "secret(namespace, name) !== 'usable'",
        "secret(namespace, name) === 'missing'",
      ],
      [
        'a Secret that is not there yet may lack its label',
        "secret(namespace, name) !== 'usable'",
        "secret(namespace, name) === 'unlabelled'",
      ],
    ],
  ),
  ...within(
    'src/operator/wanted.ts',
    ['test/unit/operator/wanted.test.ts'],
    [
      [
        'additions to a NetworkPolicy are reverted',
        "wanted.kind === 'NetworkPolicy' ? OWNERS_ONLY : KEYED_LISTS",
        'KEYED_LISTS',
      ],
      [
        'a flag that says another thing when it is absent is put back',
        'if (wanted === false) return LEFT_OUT_WHEN_FALSE.has(field)',
        'if (wanted === false) return true',
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/certificate-keeper.ts',
    ['test/unit/operator/certificates.test.ts'],
    [
      [
        'a new authority is trusted before it is used',
        '      await trust(client, options.configurationName, caBundle)\n',
        '',
      ],
      [
        'and has spread by then',
        'timers.after(Math.min(SPREAD_MS, lifetimeMs / 20), resolve)',
        'timers.after(0, resolve)',
      ],
      [
        'who was slower takes what is there',
        'if (!(error instanceof KubeError && error.status === 409)) throw error\n        stored = await read()',
        'throw error',
      ],
      ['who does not lead writes no configuration', 'if (options.isLeader()) await trust(', 'await trust('],
      ['a certificate is over with its end', 'clock.now() < current.notAfterMs', 'clock.now() > 0'],
      ['the Secret is replaced only as it was seen', 'before?.object.metadata.resourceVersion,', 'undefined,'],
    ],
  ),
  ...within(
    'src/operator/webhook/certificates.ts',
    ['test/unit/operator/certificates.test.ts'],
    [
      ['authorities that are over are not trusted', '.notAfter.getTime() > nowMs', '.notAfter.getTime() > 0'],
      ['a certificate is renewed in time', '* (isLeader ? 8 : 9)) / 12', '* (isLeader ? 12 : 12)) / 12'],
      ['a certificate of the future is replaced', 'nowMs < notBeforeMs || ', ''],
    ],
  ),
  ...within(
    'src/operator/webhook/configurations.ts',
    ['test/unit/operator/reviews.test.ts'],
    [
      [
        'what could not be looked at is refused',
        "        failurePolicy: 'Fail',\n        matchPolicy: 'Equivalent',\n        timeoutSeconds: TIMEOUT_SECONDS,\n        clientConfig: clientConfig(options, VALIDATE_PATH)",
        "        failurePolicy: 'Ignore',\n        matchPolicy: 'Equivalent',\n        timeoutSeconds: TIMEOUT_SECONDS,\n        clientConfig: clientConfig(options, VALIDATE_PATH)",
      ],
      [
        'a pod that could not be looked at does not start',
        "        failurePolicy: 'Fail',\n        matchPolicy: 'Equivalent',\n        reinvocationPolicy",
        "        failurePolicy: 'Ignore',\n        matchPolicy: 'Equivalent',\n        reinvocationPolicy",
      ],
      [
        'the webhook skips the operator’s own namespace and kube-system',
        "values: [...new Set([ownNamespace, 'kube-system'])]",
        "values: ['kube-system', ownNamespace].slice(0, 1)",
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/decisions.ts',
    ['test/unit/operator/tenants.test.ts'],
    [
      [
        'a Secret without its label is refused at admission',
        'const forbidden = (object: KubeObject, namespace: string): string[] => unlabelled(namespace, secretsIn(object))',
        'const forbidden = (): string[] => []',
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/lookups.ts',
    ['test/unit/operator/lookups.test.ts'],
    [
      [
        'what is looked up is of the namespace',
        'metadata.name === name && metadata.namespace === namespace',
        'metadata.name === name',
      ],
      ['a miss is not asked for again at once', 'misses.set(key, clock.now() + MISS_MS)', ''],
      ['misses are bounded', 'if (misses.size <= MOST_MISSES) break', 'break'],
    ],
  ),
  ...within(
    'src/operator/webhook/mutate.ts',
    ['test/unit/operator/injection.test.ts'],
    [
      [
        'a pod whose config is not there is refused',
        '  if (config === undefined)\n    return no(',
        '  if (config === undefined)\n    return (() => ({ allowed: true }))(',
      ],
      ['a pod whose config cannot run is refused', 'if (config.problem !== undefined)', "if (config.problem === '')"],
      [
        'a pod that asks for nonsense is refused',
        "if (read.problems !== undefined) return { allowed: false, message: read.problems.join('\\n') }",
        'if (read.problems !== undefined) return { allowed: true }',
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/review-turns.ts',
    ['test/unit/operator/review-turns.test.ts'],
    [
      [
        'reviews of a namespace are evaluated one at a time',
        'if (line === undefined) {',
        'if (line === undefined || line.length === 0) {',
      ],
      [
        'what waits of a namespace is bounded',
        'line.length >= MOST_WAITING || waiting > MOST_WAITING_BYTES',
        'waiting < 0',
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/review.ts',
    ['test/unit/operator/reviews.test.ts'],
    [
      [
        'a review is of the version that is spoken here',
        "body['apiVersion'] !== 'admission.k8s.io/v1')",
        "body['apiVersion'] === '')",
      ],
    ],
  ),
  ...within(
    'src/operator/webhook/server.ts',
    ['test/system/operator/webhook-server.test.ts'],
    [
      ['a review has a bound', 'if (length > MAX_BODY_BYTES) return 413', ''],
      ['a review comes by POST', "if (request.method !== 'POST') return refusal(405)", ''],
      [
        'a review is JSON',
        "if (!/^application\\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) return",
        "if (request.headers['content-type'] === '') return",
      ],
      [
        'who leaves answers on',
        'await new Promise((resolve) => setTimeout(resolve, options.leaveMs ?? DEFAULT_LEAVE_MS))',
        'await Promise.resolve(options.leaveMs ?? DEFAULT_LEAVE_MS)',
      ],
      ['a new certificate is served', '      pair = pairOf(certificate)\n', ''],
      ['a decision that throws is no leave', 'return refusal(500)', 'return refusal(200)'],
      [
        'a review is aborted when its client leaves',
        'await turns.take(review.namespace, bytes, gone)',
        'await turns.take(review.namespace, bytes, AbortSignal.any([]))',
      ],
      ['bytes that are no UTF-8 are no review', '{ fatal: true }', '{ fatal: false }'],
    ],
  ),
  ...within(
    'src/operator/webhook/validate.ts',
    ['test/unit/operator/reviews.test.ts'],
    [['what validate refuses is refused', 'if (problems.length > 0) {', 'if (problems.length > 99) {']],
  ),
]
