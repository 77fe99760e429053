"""What MiniDNS reads: zones and catalog zones, consistent and at one serial."""
