import { fromJson } from '@bufbuild/protobuf'
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'

/** A timestamp message of its JSON form. */
export const timestampFromJson = (text: string) => fromJson(TimestampSchema, text)

/** A duration message of its JSON form. */
export const durationFromJson = (text: string) => fromJson(DurationSchema, text)
