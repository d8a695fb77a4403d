# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # One question to a name server (RFC 1035, section 4.1). Frozen.
      #
      # Messages are written and read here and not by Ruby's resolv, because that of Ruby 3.3 can't read them in a
      # Ractor, follows compression pointers without a limit (CVE-2025-24294) and keeps a class for each record type
      # that a server makes up. The tests use resolv as the other side.
      class Query
        A = 1
        CNAME = 5
        SOA = 6
        AAAA = 28
        IN = 1

        RECURSION_DESIRED = 0x0100

        attr_reader :name, :type, :id, :bytes

        # @param name [String] wire name
        # @param type [Integer] A or AAAA
        # @param except [Integer, nil] id of another question on the same socket
        def initialize(name, type, except: nil)
          @name = name
          @type = type
          # From the kernel: an id that a stranger can guess is half of a forged answer (RFC 5452).
          loop { break unless (@id = Random.urandom(2).unpack1("n")) == except }
          @bytes = ([@id, RECURSION_DESIRED, 1, 0, 0, 0].pack("n6") << name << [0, type, IN].pack("Cnn")).freeze
          freeze
        end

        # @return [Array<Query>] a question for each type, with different ids
        def self.each_type(name, types)
          types.each_with_object([]) { |type, made| made << new(name, type, except: made.last&.id) }
        end
      end
    end
  end
end
