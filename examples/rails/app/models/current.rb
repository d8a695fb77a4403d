# frozen_string_literal: true

# What belongs to the request being answered, and to no other.
class Current < ActiveSupport::CurrentAttributes
  attribute :request_id
end
