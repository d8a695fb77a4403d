# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # The names and numbers of DNS parameters, from IANA's registry.
      #
      # Outside of messages, a record type is a Symbol such as `:TXT`. A type that is not in TYPES has the form of RFC
      # 3597: `:TYPE1000`.
      module Codes
        TYPES = {
          A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, HINFO: 13, MX: 15, TXT: 16, RP: 17, AFSDB: 18, SIG: 24, KEY: 25,
          AAAA: 28, LOC: 29, SRV: 33, NAPTR: 35, KX: 36, CERT: 37, DNAME: 39, OPT: 41, DS: 43, SSHFP: 44, RRSIG: 46,
          NSEC: 47, DNSKEY: 48, DHCID: 49, NSEC3: 50, NSEC3PARAM: 51, TLSA: 52, SMIMEA: 53, CDS: 59, CDNSKEY: 60,
          OPENPGPKEY: 61, CSYNC: 62, ZONEMD: 63, SVCB: 64, HTTPS: 65, SPF: 99, EUI48: 108, EUI64: 109, TKEY: 249,
          TSIG: 250, IXFR: 251, AXFR: 252, MAILB: 253, MAILA: 254, ANY: 255, URI: 256, CAA: 257
        }.freeze
        TYPE_NAMES = TYPES.invert.freeze

        IN = 1

        RCODES = {
          NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, YXDOMAIN: 6, YXRRSET: 7,
          NXRRSET: 8, NOTAUTH: 9, NOTZONE: 10, BADVERS: 16
        }.freeze
        RCODE_NAMES = RCODES.invert.freeze

        # Types of which no zone has records. They occur only in questions, or describe the message itself (RFC 6895,
        # section 3.1).
        META = %i[OPT TKEY TSIG IXFR AXFR MAILB MAILA ANY].freeze

        GENERIC_TYPE = /\ATYPE(\d{1,5})\z/

        module_function

        # @param number [Integer] 0 to 65,535
        # @return [Symbol]
        def type_name(number) = TYPE_NAMES[number] || :"TYPE#{number}"

        # @param name [Symbol, String] `:MX`, or `:TYPE15`
        # @return [Integer]
        # @raise [ArgumentError]
        def type_number(name)
          TYPES[name] || generic_type(name.to_s.upcase)
        end

        # @param number [Integer]
        # @return [Symbol]
        def rcode_name(number) = RCODE_NAMES[number] || :"RCODE#{number}"

        # @param name [Symbol]
        # @return [Integer]
        # @raise [ArgumentError]
        def rcode_number(name)
          RCODES.fetch(name) do
            raise ArgumentError, "#{name.inspect} is not a DNS RCODE (known: #{RCODES.keys.join(", ")})"
          end
        end

        def generic_type(name)
          number = TYPES[name.to_sym] || name[GENERIC_TYPE, 1]&.to_i
          return number if number && number <= 65_535

          raise ArgumentError, "#{name.inspect} is not a DNS record type: use a name (A, AAAA, TXT …), or TYPE and " \
                               "a number, such as TYPE1000"
        end
      end
    end
  end
end
