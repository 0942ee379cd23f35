import { describe, expect, test } from 'vitest'
import { ourAuthorization, signingCases, type SigningCase } from '../../scripts/vectors-cases.ts'
import recorded from '../vectors/botocore.json' with { type: 'json' }

const cases = recorded.cases as unknown as { request: SigningCase; authorization: string }[]

describe(`signatures recorded from ${recorded.source}`, () => {
  test.each(cases)('$request.method $request.url', ({ request, authorization }) => {
    expect(ourAuthorization(request)).toBe(authorization)
  })

  test('are of the requests that are generated today', () => {
    expect(cases.map(({ request }) => request)).toEqual(signingCases(cases.length))
    expect(cases.length).toBeGreaterThanOrEqual(150)
  })
})
