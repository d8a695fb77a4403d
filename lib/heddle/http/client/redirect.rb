# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The request that a response with status 3xx asks for (RFC 9110, 15.4).
      #
      # @api private
      module Redirect
        STATUSES = [301, 302, 303, 307, 308].freeze
        # Fields that are sent only to the origin they were set for.
        SECRET = /\A(?:authorization|cookie|proxy-authorization|host)\z/i
        # Fields that describe the body; dropped when the redirect changes the method, because then no body is sent.
        OF_BODY = /\A(?:content-(?:length|type|encoding|language|location)|transfer-encoding|expect)\z/i
        private_constant :STATUSES, :SECRET, :OF_BODY

        module_function

        # @param head [H1::ReceivedResponse]
        # @return [String, nil] the redirect's target; nil: the response is not a redirect
        def location(head)
          STATUSES.include?(head.status) ? Fields.value(head.fields, "location") : nil
        end

        # @param request [Request] the redirected request
        # @param origin [OriginPool] the origin of the next request
        # @param target [String] its target
        # @param own [Hash, nil] the Authorization field for the user and password in the redirect's URL; nil: the URL
        #   has none
        # @return [Request]
        # @raise [RedirectError] when the body can't be sent again
        def follow(request, status, origin, target, own)
          method = method_after(request.method, status)
          list = fields_after(request, origin, method, own)
          Fields.list(own, list) if own
          body = method == request.method ? replayed(request) : nil
          Request.new(method, origin, target, FieldList.new(list), body)
        end

        def fields_after(request, origin, method, own)
          moves = !origin.equal?(request.origin)
          list = moves ? ["Host", origin.authority, *origin.proxy_fields] : []
          request.fields.each do |name, value|
            next if (moves && name.match?(SECRET)) || (own && name.casecmp?("authorization")) ||
                    (method != request.method && name.match?(OF_BODY))

            list << name << value
          end
          list
        end

        def method_after(method, status)
          return "GET" if status == 303 && method != "HEAD"

          [301, 302].include?(status) && method == "POST" ? "GET" : method
        end

        def replayed(request)
          return request.body if request.replayable?

          raise RedirectError, "#{request.origin}#{request.target} redirects a request whose body can't be sent " \
                               "again, because its source can be read only once. Give a String, an Array or an IO " \
                               "that can be rewound"
        end
      end
    end
  end
end
