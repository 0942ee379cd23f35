import { describe, expect, test } from 'vitest'
import { ourAuthorization, s3SigningCases, signingCases, type SigningCase } from '../../../interop/vectors-cases.ts'
import ordinary from '../../vectors/botocore.json' with { type: 'json' }
import s3 from '../../vectors/botocore-s3.json' with { type: 'json' }

describe.each([
  [ordinary, signingCases],
  [s3, s3SigningCases],
])('signatures recorded from $source', (recorded, generate) => {
  const cases = recorded.cases as unknown as { request: SigningCase; authorization: string }[]

  test.each(cases)('$request.service $request.method $request.url', ({ request, authorization }) => {
    expect(ourAuthorization(request)).toBe(authorization)
  })

  test('are of the requests that are generated today', () => {
    expect(cases.map(({ request }) => request)).toEqual(generate(cases.length))
    expect(cases.length).toBeGreaterThanOrEqual(150)
  })
})
