# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # One question to a name server (RFC 1035, section 4.1). Frozen.
      #
      # Messages are written and read here and not by Ruby's resolv, because resolv in Ruby 3.3 can't read them in a
      # Ractor, follows compression pointers without a limit (CVE-2025-24294) and keeps a class for each record type
      # that a server makes up. The tests use resolv as the server.
      #
      # @api private
      class Query
        A = 1
        CNAME = 5
        SOA = 6
        AAAA = 28
        IN = 1

        OPT = 41

        RECURSION_DESIRED = 0x0100
        # Bytes of UDP that are asked for: a packet of that size passes nearly everywhere (RFC 9715).
        EDNS_SIZE = 1_232
        DNSSEC_OK = 0x8000

        attr_reader :name, :type, :id, :bytes

        # @param name [String] wire name
        # @param type [Integer]
        # @param except [Integer, nil] id of another question on the same socket
        # @param flags [Integer] of the header
        # @param edns [Integer, nil] flags of the OPT record (RFC 6891); nil: without one
        # @param reply [#read] what reads messages as replies to it
        def initialize(name, type, except: nil, flags: RECURSION_DESIRED, edns: 0, reply: Reply)
          @name = name
          @type = type
          @flags = flags
          @edns = edns
          @except = except
          @reply = reply
          # From the kernel's random numbers: an attacker must not be able to guess it (RFC 5452).
          loop { break unless (@id = Random.urandom(2).unpack1("n")) == except }
          @bytes = ([@id, flags, 1, 0, 0, edns ? 1 : 0].pack("n6") << name << [0, type, IN].pack("Cnn"))
          @bytes << [0, OPT, EDNS_SIZE, edns, 0].pack("CnnNn") if edns
          @bytes.freeze
          freeze
        end

        def edns? = !@edns.nil?

        # Whether EDNS is only for the size, and does not ask for DNSSEC records.
        def edns_optional? = @edns == 0

        # @return [Query] the same question for a server that does not know EDNS
        def without_edns = self.class.new(@name, @type, except: @except, flags: @flags, edns: nil, reply: @reply)

        # @param bytes [String]
        # @return [Object, nil] a reply; nil when the message does not answer this question
        def read(bytes) = @reply.read(bytes, self)

        # @return [Array<Query>] a question for each type, with different ids
        def self.each_type(name, types)
          types.each_with_object([]) { |type, made| made << new(name, type, except: made.last&.id) }
        end
      end
    end
  end
end
