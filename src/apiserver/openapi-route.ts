// Which OpenAPI document is asked for? v3 per group and version with a hash that may be cached for ever,
// v2 in protobuf for old kubectls and in JSON for everyone else.
import { unknownResource } from '../api/status-error.ts'
import type { HttpCall } from './http-verbs.ts'
import type { ApiResponse } from './respond.ts'

export async function openapiDocument(_path: string, _call: HttpCall): Promise<ApiResponse> {
  throw unknownResource()
}
