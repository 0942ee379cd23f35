const owner = { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }
const field = { manager: 'a', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }
const BIG = 256 * 1024

/** Valid `metadata` beside a name. */
// prettier-ignore
export const METADATA: readonly object[] = [
  ...['a', 'a.b', 'a-b', '-a', 'a-', 'A', 'a_b', 'a..b', '', '.', 'ä', 'a\u00A0', 'a'.repeat(253), 'a'.repeat(254), 7, null].map((name) => ({ name })),
  {},
  { generateName: 'a-' },
  ...['a-', 'A_', 'a.', '', 7, null].map((generateName) => ({ name: 'a', generateName })),
  ...['a', 'a.b', 'A', '', 'a'.repeat(63), 'a'.repeat(64), 7, null].map((namespace) => ({ name: 'a', namespace })),
  ...['a', 'a b', 'A.B_c-d', 'a.com/b', 'A.com/b', 'a.com/b/c', '/a', 'a/', '', '-a', 'a-', 'ä', 'a\u00A0', 'a'.repeat(63), 'a'.repeat(64), `${'a'.repeat(253)}/b`, `${'a'.repeat(254)}/b`].flatMap(
    (key) => [{ name: 'a', labels: { [key]: 'v' } }, { name: 'a', annotations: { [key]: 'v' } }, { name: 'a', finalizers: [key] }],
  ),
  ...['', 'a', 'a b', 'a.b_c-d', '-a', 'a-', 'ä', 'a\n', 'a'.repeat(63), 'a'.repeat(64), 7, true, null, []].flatMap((value) => [
    { name: 'a', labels: { k: value } },
    { name: 'a', annotations: { k: value } },
  ]),
  ...[null, [], 'a', {}].flatMap((value) => [
    { name: 'a', labels: value },
    { name: 'a', annotations: value },
    { name: 'a', finalizers: value },
    { name: 'a', ownerReferences: value },
    { name: 'a', managedFields: value },
  ]),
  { name: 'a', annotations: { a: 'x'.repeat(BIG - 1) } },
  { name: 'a', annotations: { a: 'x'.repeat(BIG) } },
  { name: 'a', annotations: { a: 'ä'.repeat(BIG / 2) } },
  ...[['orphan'], ['foregroundDeletion'], ['orphan', 'foregroundDeletion'], ['kubernetes'], [7], [null]].map((finalizers) => ({ name: 'a', finalizers })),
  ...[owner, { ...owner, uid: '' }, { ...owner, name: undefined }, { ...owner, kind: 'Event' }, { ...owner, more: 1 }, { ...owner, controller: 'true' }, { ...owner, controller: true, blockOwnerDeletion: true }, null].map((one) => ({ name: 'a', ownerReferences: [one] })),
  { name: 'a', ownerReferences: [{ ...owner, controller: true }, { ...owner, uid: 'c', controller: true }] },
  ...[field, { ...field, operation: 'Other' }, { ...field, fieldsType: 'Other' }, { ...field, more: 1 }, {}].map((one) => ({ name: 'a', managedFields: [one] })),
  ...[1, 0, -1, 1.5, '1', null].flatMap((value) => [{ name: 'a', generation: value }, { name: 'a', deletionGracePeriodSeconds: value }]),
  ...['2026-01-01T00:00:00Z', '2026-01-01T00:00:00+01:00', '2026-01-01T00:00:00.5Z', '2026-01-01', '2026-02-30T00:00:00Z', '2026-01-01T24:00:00Z', 'x', '', 7, null].flatMap((value) => [
    { name: 'a', creationTimestamp: value },
    { name: 'a', deletionTimestamp: value },
  ]),
  ...['1', 1, null].flatMap((value) => [{ name: 'a', uid: value }, { name: 'a', resourceVersion: value }, { name: 'a', selfLink: value }]),
  { name: 'a', clusterName: 'b' },
  { name: 'a', more: null },
]
