# frozen_string_literal: true

module Heddle
  # Options that were removed.
  module Options
    # Former options, each with the rule that replaces it.
    REMOVED = {
      out_of_band_gc_growth: "Ruby makes a major collection by itself after 256 MiB of growth",
      reuse_port: 'write it behind the address: bind "tcp://0.0.0.0:9292?reuse_port=on"',
      handshake_timeout: "head_timeout limits the TLS handshake and the PROXY header, too",
      descriptor_limit: "the soft limit is raised to the hard one; ulimit -Hn 1024 keeps it below 1,024",
      linger_timeout: "a rejected client is read for 2 s",
      linger_limit: "4 MiB of a rejected client are read",
      request_line_limit: "a request line has 16 KiB at most",
      header_count: "a request has 100 header lines at most; header_limit limits their size",
      body_buffer: "a body of up to 64 KiB is kept in memory, a larger one in body_folder",
      body_grace: "body_rate applies after 10 s",
      body_pause: "a streamed body may pause for 0.25 s before the application is called",
      chunk_extension_limit: "the chunk extensions of a body have 4 KiB at most",
      chunk_overhead_limit: "the framing of a chunked body exceeds its data by 16 KiB at most",
      http2_resets: "as many streams as http2_streams may be reset at once, then a third of that a second",
      http2_control_frames: "1,000 control frames at once, then 330 a second",
      http2_control_answers: "100 answers to PING and SETTINGS wait for a client at most",
      http2_overhead: "an eighth of all bytes may exceed the payload by 1 MiB",
      http2_updates: "100 WINDOW_UPDATE and PRIORITY frames, and 10 more for each request",
      http2_continuations: "a request has 4 CONTINUATION frames at most, or one for each 16 KiB of header_limit",
      http2_settings: "a SETTINGS frame has 32 settings at most",
      http2_cookies: "50 cookie fields do not count as header lines",
      http2_body_window: "the request bodies of a connection have a window of 1 MiB",
      http2_response_buffer: "256 KiB of a response are kept for a slow client",
      http2_connection_buffer: "1 MiB of all responses of a connection are kept for a slow client",
      http2_write_rate: "a client must take 1,000 bytes a second, measured over write_timeout",
      websocket_fragment_limit: "a message has 1,000 frames at most, or one for each KiB of websocket_message_limit",
      websocket_timeout: "a client has 20 s to answer a ping or a close frame; websocket_ping sets the interval",
      pubsub_stored: "Redis or PostgreSQL keeps the last 10,000 messages",
      pubsub_topics: "one topic is kept for each KiB of pubsub_memory",
      lag_target: "fewer requests run at once while the loop is late by 0.25 s; max_requests sets a fixed number",
      offload_threads: "512, or less in a small container; the application may set Heddle::Offload.thread_limit",
      report_held_connections: "on in development; the application may set Heddle::Pool.report_held_connections",
      alt_svc: "the application, or the proxy, sets the field alt-svc"
    }.freeze

    # @param name [Symbol, String] as it was written in a file, a flag or a variable
    # @return [String, nil] what an operator has to know of an option that was removed; nil: there was none
    def self.removed(name)
      name = name.to_s.downcase.sub(/\A--(?:no-)?|\Aheddle_/, "").tr("-", "_").to_sym
      "was removed: #{REMOVED.fetch(name)}. Delete it" if REMOVED.key?(name)
    end
  end
end
