import { z } from 'zod'
import { SECRET_REFS, withMark, withRules, dataKey, objectName, secretRef } from '../fields/index.ts'

/** Listed with the secrets, so that code that collects files finds it. */
const configMapKeyRef = () =>
  withMark(
    z.strictObject({
      name: objectName().describe('Name of the ConfigMap.'),
      key: dataKey().describe('Key within the ConfigMap.'),
      optional: z.literal(false).optional().describe('The certificates have to be there.'),
    }),
    SECRET_REFS,
    'certificates',
  )

/** CA certificates (PEM) in a ConfigMap or Secret of the namespace (kubernetes.md §3). */
export const caBundleRef = () =>
  withRules(
    z.strictObject({
      configMapRef: configMapKeyRef().optional().describe('Found beside the secrets, as `<name>/<key>`.'),
      secretRef: secretRef('certificates').optional().describe('Key of a Secret.'),
    }),
    [
      {
        message: 'expected exactly one of "configMapRef" and "secretRef"',
        holds: (value) => (value.configMapRef === undefined) !== (value.secretRef === undefined),
        cel: 'has(self.configMapRef) != has(self.secretRef)',
        json: { oneOf: [{ required: ['configMapRef'] }, { required: ['secretRef'] }] },
      },
    ],
  )
export type CaBundleRef = z.output<ReturnType<typeof caBundleRef>>
