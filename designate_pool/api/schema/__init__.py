"""Operations as values, and the OpenAPI document made of them."""
