import { expect } from 'vitest'
import type { KubeClient, ResourceType } from '../../../src/kube/index.ts'
import { NAMES } from '../../../src/operator/index.ts'
import { updatesOf } from './audit-log.ts'
import { type ControlPlane, eventually } from './control-plane.ts'

interface Hook {
  readonly clientConfig: { readonly caBundle?: string }
}
interface Place {
  readonly plane: ControlPlane
  readonly client: KubeClient
}

/**
 * Takes the CA out of the operator's webhook configuration of this type and waits until it is back. Milliseconds from the API
 * server's answer to the one write to its answer to the other, by its own clock.
 */
export async function caIsBackAfter({ plane, client }: Place, type: ResourceType): Promise<number> {
  const read = () => client.get(type, undefined, NAMES.webhooks)
  const bundles = async () => ((await read())['webhooks'] as Hook[]).map(({ clientConfig }) => clientConfig.caBundle)
  const updates = () => updatesOf(plane, { plural: type.plural, name: NAMES.webhooks })
  const before = await bundles()
  expect(before[0]).toBeDefined()
  const known = updates().length
  const object = await read()
  const webhooks = (object['webhooks'] as Hook[]).map(
    ({ clientConfig: { caBundle: _lost, ...clientConfig }, ...hook }) => Object.assign(hook, { clientConfig }),
  )
  await client.update(type, { ...object, webhooks })
  await eventually(async () => expect(await bundles()).toEqual(before), 60_000)
  const [lost, back] = await eventually(() => {
    const seen = updates().slice(known)
    expect(seen).toHaveLength(2)
    return seen
  })
  return Date.parse(back?.stageTimestamp ?? '') - Date.parse(lost?.stageTimestamp ?? '')
}
