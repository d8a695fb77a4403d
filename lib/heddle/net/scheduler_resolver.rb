# frozen_string_literal: true

require "heddle/net"
require "heddle/scheduler"

module Heddle
  # With this file, fibers that resolve a name wait for Heddle's own resolver.
  class Scheduler
    private

    # @return [Net::Resolver, nil] nil where it can't be loaded: in a Ractor of Ruby 3.3, before the main one has loaded
    #   it
    def load_resolver
      # Called within Ruby's socket extension, so the fiber must not be switched while the files are loaded.
      Fiber.blocking { Net::Resolver }.new
    rescue Ractor::Error
      nil
    end
  end
end
