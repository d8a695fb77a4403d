# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # One question to a name server (RFC 1035, section 4.1). Frozen.
      #
      # Its message, and the reply, are a {DNS::Message} and not resolv's, because resolv in Ruby 3.3 can't read
      # messages in a Ractor, follows compression pointers without a limit (CVE-2025-24294) and keeps a class for each
      # record type that a server makes up.
      #
      # @api private
      class Query
        RECURSION_DESIRED = 0x0100
        # How many answers of a message about addresses are read: more are not needed, and 64 KiB of them take 50 ms.
        MAX_ADDRESSES = 512

        attr_reader :question, :id, :bytes, :max_answers

        # @param question [DNS::Question]
        # @param except [Integer, nil] id of another question on the same socket
        # @param flags [Integer] of the header
        # @param edns [DNS::EDNS, nil] nil: without EDNS
        # @param max_answers [Integer, nil] how many answers of a message are read at most; nil: all
        def initialize(question, except: nil, flags: RECURSION_DESIRED, edns: DNS::EDNS.of, max_answers: nil)
          @question = question
          @flags = flags
          @edns = edns
          @except = except
          @max_answers = max_answers
          # From the kernel's random numbers: an attacker must not be able to guess it (RFC 5452).
          loop { break unless (@id = Random.urandom(2).unpack1("n")) == except }
          message = DNS::Message.new(@id, flags, edns)
          message.questions << question
          @bytes = message.encode.freeze
          freeze
        end

        def edns? = !@edns.nil?

        # Whether EDNS is only for the size, and does not ask for DNSSEC records.
        def edns_optional? = edns? && !@edns.dnssec

        # @return [Query] the same question for a server that does not know EDNS
        def without_edns
          self.class.new(@question, except: @except, flags: @flags, edns: nil, max_answers: @max_answers)
        end

        # @return [Array<Query>] a question for the addresses of each type, with different ids
        def self.each_type(name, types)
          types.each_with_object([]) do |type, made|
            made << new(DNS::Question.of(name, type), except: made.last&.id, max_answers: MAX_ADDRESSES)
          end
        end
      end
    end
  end
end
