# frozen_string_literal: true

# Attributes of the request that is being answered, and of no other.
class Current < ActiveSupport::CurrentAttributes
  attribute :request_id
end
