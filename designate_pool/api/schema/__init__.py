"""The fields of requests and answers, operations as values, and the OpenAPI document made of them."""
