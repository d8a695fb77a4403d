# frozen_string_literal: true

module Heddle
  module Adaptations
    # Prepended to the SDK's class of spans. Adds the parts of the request's time account, in seconds, to its span, as
    # attributes such as `heddle.account.query`. A span processor can't add them, because the SDK calls it while the
    # span is locked.
    module OpenTelemetry
      ATTRIBUTES = [*Account::PARTS, :other, :total].to_h { |part| [part, "heddle.account.#{part}".freeze] }.freeze
      private_constant :ATTRIBUTES

      # @return [void]
      def self.install = (::OpenTelemetry::SDK::Trace::Span.prepend(self) if Adaptations.adapt?(:opentelemetry_sdk))

      # Only the span of the request itself has the kind :server.
      def finish(...)
        account = Account.current if kind == :server && recording?
        add_attributes(account.slice(*ATTRIBUTES.keys).transform_keys(ATTRIBUTES)) if account
        super
      end
    end
  end
end
