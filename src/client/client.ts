// How does every part talk to the API? Through this interface alone, in process or over HTTP (decision 3).
import type { ObjectApi } from '../api/verbs.ts'

export type Client = ObjectApi
