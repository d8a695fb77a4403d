# frozen_string_literal: true

require "heddle/net"
require "heddle/scheduler"

module Heddle
  # Makes the scheduler resolve host names with {Net::Resolver}.
  class Scheduler
    private

    # @return [Net::Resolver, nil] nil if it can't be loaded: in a Ractor of Ruby 3.3, unless the main Ractor has
    #   already loaded it
    def load_resolver
      # Ruby's socket extension calls this method. A fiber that waited for the files here would appear to wait in a
      # callback of a native library.
      Fiber.blocking { Net::Resolver }.new
    rescue Ractor::Error
      nil
    end
  end
end
