# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The application's answer can't be sent as HTTP, such as a line end in a header. Nothing of it has reached
      # the wire when this is raised.
      class InvalidResponse < StandardError
      end
    end
  end
end
