# frozen_string_literal: true

require_relative "application"
require_relative "../http/contestants/heddle"
require_relative "../http/contestants/falcon"
require_relative "../http/contestants/puma"
require_relative "../http/contestants/itsi"
require_relative "../http/contestants/iodine"
require_relative "../http/native"

module Bench
  module Stalls
    # The servers of bin/bench http with another application; each row says with how many processes.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)

      # Where the application finds its native work.
      module WithWork
        def environment = super.merge(Application::LIBRARY => HTTP::Native.program("work.so"), **@services.to_h)

        # @param environment [Hash] that says where databases are, for instance
        # @return [HTTP::Contestant] the same, started in it
        def with_services(environment) = clone.tap { |other| other.services = environment }

        protected

        attr_writer :services
      end

      # Heddle as it is, and without its protections.
      class Heddle < HTTP::Contestants::Heddle
        prepend WithWork

        def initialize(protect: true, **)
          super(**)
          @protect = protect
        end

        def key = @protect ? super : "heddle-off"

        def label = @protect ? super : "Heddle, unprotected"

        def role = @protect ? super : :baseline

        # The library of the row "held" waits with Ruby's lock held: such ones are named.
        def command(...) = super + (@protect ? %w[--offload-allow libc:work] : %w[--protect off])
      end

      # As many threads as it has by itself, and as many as there are requests.
      class Puma < HTTP::Contestants::Puma
        prepend WithWork

        def key = "puma-#{@threads}"

        def label = "Puma, #{@threads} threads"

        private

        def gem_name = "puma"
      end

      # One fork, and the requests on its Fiber scheduler.
      class Itsi < HTTP::Contestants::Itsi
        prepend WithWork
      end

      Falcon = Class.new(HTTP::Contestants::Falcon) { prepend WithWork }
      Iodine = Class.new(HTTP::Contestants::Iodine) { prepend WithWork }

      # @return [Array<HTTP::Contestant>]
      def self.all
        [Heddle.new(config: CONFIG), Heddle.new(config: CONFIG, protect: false), Falcon.new(config: CONFIG),
         Puma.new(config: CONFIG), Puma.new(config: CONFIG, threads: 64), Itsi.new(:fibers, config: CONFIG),
         Iodine.new(config: CONFIG)]
      end
    end
  end
end
