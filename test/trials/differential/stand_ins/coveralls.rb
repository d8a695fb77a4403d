# frozen_string_literal: true

# For suites that report their coverage to a service: trials don't.
module Coveralls
  def self.wear!(*) = nil
end
