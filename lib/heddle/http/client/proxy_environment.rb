# frozen_string_literal: true

require "ipaddr"

module Heddle
  module HTTP
    class Client
      # Reads the variables `http_proxy`, `https_proxy` and `no_proxy`, also in upper case. Never resolves a host name,
      # because perhaps only the proxy can resolve it, and because a lookup would delay the request.
      #
      # @api private
      module ProxyEnvironment
        module_function

        # @param host [String] a name or an address, without brackets
        # @param environment [#[]]
        # @return [String, nil] the proxy's URL; nil: connect directly. Always nil for localhost and loopback addresses
        def find(scheme, host, port, environment = ENV)
          url = proxy(scheme, environment) or return
          address = address(host)
          return if address ? address.loopback? : within?(host, "localhost")

          no_proxy = first_of(environment, "no_proxy", "NO_PROXY").to_s
          url unless no_proxy.split(/[\s,]+/).any? { |entry| matches?(entry, host.downcase, address, port) }
        end

        def proxy(scheme, environment)
          names = ["#{scheme}_proxy", "#{scheme.upcase}_PROXY"]
          # Under CGI, a client can set HTTP_PROXY by sending a Proxy field (CVE-2016-5385).
          names.pop if scheme == "http" && environment["REQUEST_METHOD"]
          first_of(environment, *names)
        end

        def first_of(environment, *names) = names.filter_map { |name| environment[name] }.find { |value| !value.empty? }

        def address(host)
          IPAddr.new(host)
        rescue IPAddr::Error
          nil # a name
        end

        # @param entry [String] a name, a name with a leading dot, an address, a network, or *; optionally with a port
        def matches?(entry, host, address, port)
          return true if entry == "*"

          name, only = split_port(entry.downcase)
          return false if name.empty? || (only && only.to_i != port)
          return !!address(name)&.include?(address) if address

          name = name.delete_prefix("*")
          name.start_with?(".") ? host.end_with?(name) : within?(host, name)
        end

        # An IPv6 address with a port is in brackets.
        def split_port(entry)
          return [Regexp.last_match(1), Regexp.last_match(2)] if entry =~ /\A\[([^\]]*)\](?::(\d+))?\z/

          entry.count(":") == 1 ? entry.split(":", 2) : [entry, nil]
        end

        def within?(host, domain) = host == domain || host.end_with?(".#{domain}")
      end
    end
  end
end
