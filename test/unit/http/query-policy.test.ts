import { describe, expect, it } from 'vitest'
import { withoutAmzParameters } from '../../../src/http/index.ts'

describe("a caller's query", () => {
  it.each([
    ['X-Amz-Security-Token=theirs', ''],
    ['a=1&X-Amz-Signature=x&b=%2F', 'a=1&b=%2F'],
    ['x-amz-date=1&X-AMZ-Credential', ''],
    ['X%2DAmz-Expires=1&c', 'c'],
    ['%58-amz-algorithm=AWS4&&d=', '&d='],
  ])('%s loses what is presigned: %s', (query, sent) => {
    expect(withoutAmzParameters(query)).toBe(sent)
  })

  it.each(['', 'a=X-Amz-Date', 'my-x-amz-date=1', 'q=%zz&&', 'x-amz-acl=private', 'x-amzn=1', 'b=%2F+&a'])(
    '%j stays as it is',
    (query) => {
      expect(withoutAmzParameters(query)).toBe(query)
    },
  )
})
