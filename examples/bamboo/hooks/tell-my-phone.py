"""Notification: fire and forget. A real one would call a push service; this one appends to a file."""

import json
import sys


notification = json.load(sys.stdin)["payload"]
with open("phone.log", "a", encoding="utf-8") as phone:
    phone.write(f"[{notification['priority']}] {notification['title']}: {notification['body']}\n")
