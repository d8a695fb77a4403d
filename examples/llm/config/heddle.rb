# frozen_string_literal: true

# A client that leaves also ends the request to the service, which would go on computing, and be paid for.
cancel_on_disconnect :all
